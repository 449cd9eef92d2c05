use std::os::unix::fs::symlink;

use frazil_core::{Clock, Entropy};
use frazil_table::{list_all, system_environment};
use tempfile::TempDir;

use super::*;

fn storage() -> (TempDir, DirectoryStorage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = DirectoryStorage::new(directory.path(), &system_environment()).unwrap();
    (directory, storage)
}

async fn listed(storage: &DirectoryStorage) -> Vec<String> {
    let prefix = format!("{}/", storage.location());
    let objects = list_all(storage, &prefix).await.unwrap();
    objects
        .iter()
        .map(|object| object.location[prefix.len()..].to_owned())
        .collect()
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let (_directory, storage) = storage();
    let root = format!("{}/conformance", storage.location());
    frazil_table::conformance::storage(Arc::new(storage), &root).await;
}

#[tokio::test]
async fn a_root_may_have_spaces_percent_signs_and_utf8() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("a b/50%20=é");
    fs::create_dir_all(&root).unwrap();
    let storage = DirectoryStorage::new(&root, &system_environment()).unwrap();
    assert_eq!(
        storage.location(),
        format!("file://{}", fs::canonicalize(&root).unwrap().display())
    );
    let location = format!("{}/x%41/y", storage.location());
    storage.put(&location, "1".into(), None).await.unwrap();
    assert_eq!(
        fs::read_to_string(root.join("x%41/y")).unwrap(),
        "1",
        "nothing is decoded"
    );
    assert_eq!(listed(&storage).await, ["x%41/y"]);
}

#[test]
fn a_root_that_engines_cannot_open_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a?b", "a#b", "a*", "a[1]", "a\nb", "a\\b"] {
        let root = directory.path().join(name);
        fs::create_dir(&root).unwrap();
        let error = DirectoryStorage::new(&root, &system_environment()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
        assert!(error.to_string().contains("engines do not take"), "{error}");
    }
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for (path, reason) in [
        (file.clone(), "a file is where a directory must be"),
        (file.join("below"), "a file is where a directory must be"),
    ] {
        let error = DirectoryStorage::new(&path, &system_environment()).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, reason));
    }
}

#[tokio::test]
async fn a_root_behind_a_link_is_the_real_one() {
    let (directory, storage) = storage();
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    symlink(directory.path(), &link).unwrap();
    let linked = DirectoryStorage::new(&link, &system_environment()).unwrap();
    assert_eq!(linked.location(), storage.location());
}

#[tokio::test]
async fn locations_that_are_not_its_own_are_refused() {
    let (_directory, storage) = storage();
    let root = storage.location().to_owned();
    let path = root.strip_prefix("file://").unwrap();
    for location in [
        "s3://bucket/x".to_owned(),
        path.to_owned() + "/x",
        format!("file:{path}/x"),
        format!("{root}x/y"),
        root.clone(),
        format!("{root}/"),
        format!("{root}/a/../../x"),
        format!("{root}/../x"),
        format!("{root}/./x"),
        format!("{root}//x"),
        format!("{root}/x/"),
        format!("{root}/x?versionId=1"),
        format!("{root}/x\0"),
        format!("{root}/catalog.db"),
        format!("{root}/catalog.db-journal"),
        format!("{root}/a/.b.attributes"),
        format!("{root}/_frazil/tmp/x"),
        format!("{root}/{}", "x".repeat(300)),
    ] {
        let kind = |result: Result<()>| result.unwrap_err().kind();
        assert_eq!(
            kind(storage.put(&location, Bytes::new(), None).await),
            ErrorKind::Invalid,
            "{location}"
        );
        assert_eq!(
            kind(storage.get(&location, 1).await.map(drop)),
            ErrorKind::Invalid,
            "{location}"
        );
        assert_eq!(
            kind(storage.get_range(&location, 0, 1).await.map(drop)),
            ErrorKind::Invalid,
            "{location}"
        );
        assert_eq!(
            kind(storage.head(&location).await.map(drop)),
            ErrorKind::Invalid,
            "{location}"
        );
        assert_eq!(
            kind(storage.delete(std::slice::from_ref(&location)).await),
            ErrorKind::Invalid,
            "{location}"
        );
    }
    for prefix in [
        "s3://b/".to_owned(),
        format!("{root}/a"),
        format!("{root}/../"),
        format!("{root}//"),
    ] {
        let error = storage.list_page(&prefix, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{prefix}");
    }
    assert_eq!(listed(&storage).await, [""; 0]);
}

#[tokio::test]
async fn files_of_its_own_and_of_others_are_not_listed() {
    let (directory, storage) = storage();
    let root = directory.path();
    for own in [
        "catalog.db",
        "catalog.db-journal",
        "catalog.db-wal",
        "_frazil/tmp/left-over",
        "a/.x.attributes",
    ] {
        write(root.join(own), "own");
    }
    write(root.join("a/who?"), "somebody's");
    fs::create_dir_all(root.join("a/empty/er")).unwrap();
    symlink(root.join("nowhere"), root.join("a/dangling")).unwrap();
    // Topics may be named like this.
    for object in [
        "catalog.db-x/1",
        "b/.x.attributes/1",
        "a/.hidden",
        "_frazil/tmp2/1",
        "tmp/1",
    ] {
        storage
            .put(&format!("{}/{object}", storage.location()), "1".into(), None)
            .await
            .unwrap();
    }
    let expected = [
        "_frazil/tmp2/1",
        "a/.hidden",
        "b/.x.attributes/1",
        "catalog.db-x/1",
        "tmp/1",
    ];
    assert_eq!(listed(&storage).await, expected);
}

#[tokio::test]
async fn a_loop_of_links_is_an_error() {
    let (directory, storage) = storage();
    fs::create_dir(directory.path().join("a")).unwrap();
    symlink(directory.path(), directory.path().join("a/loop")).unwrap();
    let error = storage
        .list_page(&format!("{}/", storage.location()), None)
        .await
        .unwrap_err();
    // The kernel gives up on a path with 40 links before we do.
    assert!(
        matches!(error.kind(), ErrorKind::Internal | ErrorKind::Unavailable),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_and_a_folder_of_one_name_exclude_each_other() {
    let (_directory, storage) = storage();
    let at = |path: &str| format!("{}/{path}", storage.location());
    storage.put(&at("a/b"), "1".into(), Some("x")).await.unwrap();
    storage.put(&at("f"), "1".into(), None).await.unwrap();
    for (path, reason) in [
        ("a", "a directory is where a file must be"),
        ("f/x", "a file is where a directory must be"),
        ("f/x/y", "a file is where a directory must be"),
    ] {
        let error = storage.put(&at(path), "2".into(), None).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Invalid, reason),
            "{path}"
        );
        assert_eq!(storage.get(&at(path), 9).await.unwrap(), None, "{path}");
        assert_eq!(storage.head(&at(path)).await.unwrap(), None, "{path}");
        storage.delete(&[at(path)]).await.unwrap();
    }
    assert_eq!(listed(&storage).await, ["a/b", "f"]);
    assert_eq!(temporaries(&storage), 0, "nothing is left behind");
}

fn temporaries(storage: &DirectoryStorage) -> usize {
    fs::read_dir(storage.root().join(TEMPORARIES)).unwrap().count()
}

#[tokio::test]
async fn a_deleted_object_leaves_no_file() {
    let (directory, storage) = storage();
    let location = format!("{}/a/b", storage.location());
    storage.put(&location, "1".into(), Some("x")).await.unwrap();
    let files = || fs::read_dir(directory.path().join("a")).unwrap().count();
    assert_eq!(files(), 2, "the object and its attributes");
    storage.delete(std::slice::from_ref(&location)).await.unwrap();
    assert_eq!(files(), 0);

    // A crash between the two, and the deletion tried again.
    storage.put(&location, "1".into(), Some("x")).await.unwrap();
    fs::remove_file(directory.path().join("a/b")).unwrap();
    assert_eq!(storage.head(&location).await.unwrap(), None);
    assert_eq!(listed(&storage).await, [""; 0]);
    storage.delete(&[location]).await.unwrap();
    assert_eq!(files(), 0);
}

#[tokio::test]
async fn directories_that_somebody_removed_are_made_again() {
    let (directory, storage) = storage();
    let location = format!("{}/a/b/c", storage.location());
    for _ in 0..2 {
        storage.put(&location, "1".into(), Some("x")).await.unwrap();
        assert_eq!(listed(&storage).await, ["a/b/c"]);
        fs::remove_dir_all(directory.path().join("a")).unwrap();
        fs::remove_dir_all(directory.path().join("_frazil")).unwrap();
    }
}

#[derive(Debug)]
struct At(i64);

impl Clock for At {
    fn now(&self) -> TimestampMs {
        TimestampMs(self.0)
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

impl Entropy for At {
    fn next_u64(&self) -> u64 {
        7
    }
}

#[tokio::test]
async fn left_overs_are_removed_after_a_day() {
    let (directory, storage) = storage();
    storage.clean(TimestampMs(0)).unwrap();
    let left = directory.path().join(TEMPORARIES).join("0000000000000007-0");
    write(left.clone(), "half");
    let written = modified(&fs::metadata(&left).unwrap()).0;
    let day = 24 * 60 * 60 * 1000;
    for (now, stays) in [
        (0, true),
        (written, true),
        (written + day, true),
        (written + day + 1, false),
    ] {
        storage.clean(TimestampMs(now)).unwrap();
        assert_eq!(left.exists(), stays, "{}", now - written);
    }

    // Until then they are in nobody's way, also with the same randomness.
    write(left.clone(), "half");
    let environment = Environment::new(Arc::new(At(0)), Arc::new(At(0)));
    let same = DirectoryStorage::new(directory.path(), &environment).unwrap();
    let location = format!("{}/a", same.location());
    same.put(&location, "whole".into(), None).await.unwrap();
    assert_eq!(same.get(&location, 9).await.unwrap(), Some("whole".into()));
    assert_eq!(fs::read_to_string(left).unwrap(), "half");
}

#[tokio::test]
async fn damaged_attributes_are_told() {
    let (directory, storage) = storage();
    let location = format!("{}/a", storage.location());
    storage.put(&location, "1".into(), Some("x")).await.unwrap();
    let beside = directory.path().join(".a.attributes");
    assert_eq!(fs::read_to_string(&beside).unwrap(), "x");
    for damaged in [vec![0xff], vec![b'x'; MAX_ATTRIBUTES_BYTES + 1], b"a\n".to_vec()] {
        fs::write(&beside, damaged).unwrap();
        let error = storage.head(&location).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Internal, "its attributes are damaged")
        );
    }
}
