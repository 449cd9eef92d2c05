use std::sync::Arc;

use bytes::Bytes;
use frazil_core::ErrorKind;
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Broken, Kept, promise, refused, same};
use crate::{MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectStorage, list_all};

/// Checks every promise of [`ObjectStorage`]. `root` is a location of it, empty and unused by others.
pub async fn storage(storage: Arc<dyn ObjectStorage>, root: &str) {
    let suite = Suite {
        storage: storage.as_ref(),
        root: root.trim_end_matches('/'),
    };
    promise("an object that was never put is missing", suite.missing()).await;
    promise("an object reads back as it was put", suite.contents()).await;
    promise("a put replaces bytes and attributes", suite.replacing()).await;
    promise("get refuses an object above its limit", suite.limit()).await;
    promise("a range ends with the object", suite.ranges()).await;
    promise("attributes read back as they were put", suite.attributes()).await;
    promise(
        "attributes that are too long or not printable ASCII are refused",
        suite.bad_attributes(),
    )
    .await;
    promise(
        "attributes are no objects and go with their object",
        suite.attributes_are_hidden(),
    )
    .await;
    promise("deleting is idempotent and spares neighbours", suite.deleting()).await;
    promise("a listing is ascending by whole location", suite.order()).await;
    promise("a listing tells sizes and times", suite.listed_sizes()).await;
    promise("a prefix matches whole folders", suite.prefixes()).await;
    promise("folders are those that hold objects, ascending", suite.folders()).await;
    promise(
        "names hold dots, hyphens, equal signs, percent signs, spaces and UTF-8",
        suite.names(),
    )
    .await;
    promise("pages add up to the listing", suite.pages()).await;
    promise(
        "concurrent puts of different objects all succeed",
        suite.concurrent_puts(),
    )
    .await;
    promise("an object is seen whole while it is replaced", suite.seen_whole()).await;
}

/// More than a page and more than one deletion call on S3.
const MANY: usize = 1_050;
/// Enough to be quick, few enough for every server.
const PUTS_AT_ONCE: usize = 32;
const NO_LIMIT: u64 = 1 << 30;

struct Suite<'a> {
    storage: &'a dyn ObjectStorage,
    root: &'a str,
}

impl Suite<'_> {
    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    async fn put(&self, path: &str, bytes: &'static [u8], attributes: Option<&str>) -> Kept {
        Ok(self
            .storage
            .put(&self.at(path), Bytes::from_static(bytes), attributes)
            .await?)
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, Broken> {
        Ok(self.storage.get(&self.at(path), NO_LIMIT).await?)
    }

    async fn head(&self, path: &str) -> Result<ObjectHead, Broken> {
        let head = self.storage.head(&self.at(path)).await?;
        head.ok_or_else(|| Broken(format!("{path} is missing")))
    }

    /// Paths under the root.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, Broken> {
        let prefix = self.at(prefix);
        let objects = list_all(self.storage, &prefix).await?;
        let root = format!("{}/", self.root);
        objects
            .into_iter()
            .map(|object| match object.location.strip_prefix(&root) {
                Some(path) => Ok(path.to_owned()),
                None => Err(Broken(format!("{} is listed under {prefix}", object.location))),
            })
            .collect()
    }

    async fn missing(&self) -> Kept {
        for path in ["missing", "missing/deep/er.json"] {
            same("get", self.get(path).await?, None)?;
            same(
                "get_range",
                self.storage.get_range(&self.at(path), 0, 1).await?,
                None,
            )?;
            same("head", self.storage.head(&self.at(path)).await?, None)?;
        }
        same("the listing", self.list("missing/").await?, Vec::new())
    }

    async fn contents(&self) -> Kept {
        let large: Vec<u8> = (0..3_000_000u32).map(|at| (at ^ (at >> 8)) as u8).collect();
        for (path, bytes) in [
            ("contents/empty", Vec::new()),
            ("contents/text", b"{\"a\":1}\n".to_vec()),
            ("contents/nul\u{20}and crlf", b"\0\r\n\xff\xfe".to_vec()),
            ("contents/deep/er/still/3 MB", large),
        ] {
            let bytes = Bytes::from(bytes);
            self.storage.put(&self.at(path), bytes.clone(), None).await?;
            same(
                &format!("{path} unchanged"),
                self.get(path).await? == Some(bytes.clone()),
                true,
            )?;
            let head = self.head(path).await?;
            same("the size", head.size_bytes, bytes.len() as u64)?;
            same("attributes", head.attributes, None)?;
        }
        Ok(())
    }

    async fn replacing(&self) -> Kept {
        let path = "replacing/a";
        for (bytes, attributes) in [
            (&b"a long first version"[..], Some("one")),
            (b"second", Some("two")),
            (b"", None),
            (b"fourth", Some("four")),
        ] {
            self.put(path, bytes, attributes).await?;
            same(
                "the object",
                self.get(path).await?,
                Some(Bytes::from_static(bytes)),
            )?;
            let head = self.head(path).await?;
            same("the size", head.size_bytes, bytes.len() as u64)?;
            same("the attributes", head.attributes.as_deref(), attributes)?;
            same(
                "the listing",
                self.list("replacing/").await?,
                vec![path.to_owned()],
            )?;
        }
        Ok(())
    }

    async fn limit(&self) -> Kept {
        self.put("limit/ten", b"0123456789", None).await?;
        for (limit, fits) in [(0, false), (9, false), (10, true), (11, true), (u64::MAX, true)] {
            let seen = self.storage.get(&self.at("limit/ten"), limit).await;
            if fits {
                same("the object", seen?, Some(Bytes::from_static(b"0123456789")))?;
            } else {
                refused(&format!("get with limit {limit}"), seen, ErrorKind::Internal)?;
            }
        }
        self.put("limit/empty", b"", None).await?;
        same(
            "an empty object",
            self.storage.get(&self.at("limit/empty"), 0).await?,
            Some(Bytes::new()),
        )
    }

    async fn ranges(&self) -> Kept {
        self.put("ranges/ten", b"0123456789", Some("x")).await?;
        self.put("ranges/empty", b"", None).await?;
        for (path, start, length, expected) in [
            ("ranges/ten", 0, 10, "0123456789"),
            ("ranges/ten", 0, 1, "0"),
            ("ranges/ten", 3, 4, "3456"),
            ("ranges/ten", 9, 1, "9"),
            ("ranges/ten", 8, 5, "89"),
            ("ranges/ten", 2, u64::MAX, "23456789"),
            ("ranges/ten", 10, 1, ""),
            ("ranges/ten", 11, 1, ""),
            ("ranges/ten", u64::MAX, 2, ""),
            ("ranges/ten", 5, 0, ""),
            ("ranges/empty", 0, 0, ""),
            ("ranges/empty", 0, 10, ""),
            ("ranges/empty", 1, 10, ""),
        ] {
            let seen = self.storage.get_range(&self.at(path), start, length).await?;
            let what = format!("{path} from {start}, {length} bytes,");
            same(&what, seen, Some(Bytes::from_static(expected.as_bytes())))?;
        }
        Ok(())
    }

    async fn attributes(&self) -> Kept {
        let longest = "a".repeat(MAX_ATTRIBUTES_BYTES);
        for attributes in [
            r#"{"topic": "a-b.c", "partitions": [0, 1, 2]}"#,
            "=?utf-8?Q?x?=",
            "%C3%A9",
            "",
            &longest,
        ] {
            self.put("attributes/a", b"1", Some(attributes)).await?;
            same(
                "the attributes",
                self.head("attributes/a").await?.attributes.as_deref(),
                Some(attributes),
            )?;
        }
        Ok(())
    }

    async fn bad_attributes(&self) -> Kept {
        let too_long = "a".repeat(MAX_ATTRIBUTES_BYTES + 1);
        for attributes in [&too_long, "é", "a\nb", "\0", " a", "a ", "\t"] {
            let put = self
                .storage
                .put(&self.at("bad-attributes/a"), Bytes::new(), Some(attributes))
                .await;
            refused(&format!("attributes {attributes:.20?}"), put, ErrorKind::Invalid)?;
        }
        same(
            "the listing after it",
            self.list("bad-attributes/").await?,
            Vec::new(),
        )
    }

    async fn attributes_are_hidden(&self) -> Kept {
        let both = ["hidden/a.json".to_owned(), "hidden/b/c.json".to_owned()];
        for path in &both {
            self.put(path, b"1", Some("seen")).await?;
        }
        same("the listing", self.list("hidden/").await?, both.to_vec())?;
        let locations = both.clone().map(|path| self.at(&path));
        self.storage.delete(&locations).await?;
        same(
            "the listing after the deletion",
            self.list("hidden/").await?,
            Vec::new(),
        )?;
        self.put(&both[0], b"2", None).await?;
        same(
            "the attributes of a later object",
            self.head(&both[0]).await?.attributes,
            None,
        )
    }

    async fn deleting(&self) -> Kept {
        for path in ["deleting/a", "deleting/ab", "deleting/a.b", "deleting/c/a"] {
            self.put(path, b"1", None).await?;
        }
        let doomed = [
            "deleting/a",
            "deleting/none",
            "deleting/none/none",
            "deleting/c/a",
        ]
        .map(|path| self.at(path));
        for _ in 0..2 {
            self.storage.delete(&doomed).await?;
            same(
                "the listing",
                self.list("deleting/").await?,
                vec!["deleting/a.b".into(), "deleting/ab".into()],
            )?;
            same("get", self.get("deleting/a").await?, None)?;
            same("head", self.storage.head(&self.at("deleting/a")).await?, None)?;
        }
        self.storage.delete(&[]).await?;
        self.put("deleting/a", b"2", None).await?;
        same(
            "an object put again",
            self.get("deleting/a").await?,
            Some(Bytes::from_static(b"2")),
        )
    }

    async fn order(&self) -> Kept {
        // Not the order of a walk through folders: `-` and `.` sort before `/`, digits and letters after it.
        let ascending = [
            "B/x", "a b/x", "a%/x", "a-b/x", "a-b/y", "a.b", "a/-", "a/b-c/x", "a/b.c", "a/b/x", "a/b0",
            "a/z", "a0", "a=1/x", "aa/x", "b", "é/x",
        ];
        for path in ascending.iter().rev() {
            self.put(&format!("order/{path}"), b"1", None).await?;
        }
        let expected: Vec<String> = ascending.iter().map(|path| format!("order/{path}")).collect();
        same("the listing", self.list("order/").await?, expected.clone())?;
        for (at, path) in expected.iter().enumerate() {
            let page = self
                .storage
                .list_page(&self.at("order/"), Some(&self.at(path)))
                .await?;
            let seen: Vec<String> = page.objects.into_iter().map(|object| object.location).collect();
            let rest: Vec<String> = expected[at + 1..].iter().map(|path| self.at(path)).collect();
            same(&format!("the listing after {path}"), seen, rest)?;
        }
        Ok(())
    }

    async fn listed_sizes(&self) -> Kept {
        self.put("sizes/one", b"1", Some("attributes")).await?;
        self.put("sizes/three", b"123", None).await?;
        let objects = list_all(self.storage, &self.at("sizes/")).await?;
        let sizes: Vec<u64> = objects.iter().map(|object| object.size_bytes).collect();
        same("the sizes", sizes, vec![1, 3])?;
        same(
            "the first is listed as newer than the second",
            objects[0].modified > objects[1].modified,
            false,
        )
    }

    async fn prefixes(&self) -> Kept {
        for path in [
            "prefix/a/b/1",
            "prefix/a/b/c/2",
            "prefix/a/bc/3",
            "prefix/a/b.4",
            "prefix/a-b/5",
        ] {
            self.put(path, b"1", None).await?;
        }
        let tables: [(&str, &[&str]); 5] = [
            ("prefix/a/b/", &["prefix/a/b/1", "prefix/a/b/c/2"]),
            ("prefix/a/bc/", &["prefix/a/bc/3"]),
            (
                "prefix/a/",
                &["prefix/a/b.4", "prefix/a/b/1", "prefix/a/b/c/2", "prefix/a/bc/3"],
            ),
            ("prefix/a/b/1/", &[]),
            ("prefix/b/", &[]),
        ];
        for (prefix, expected) in tables {
            let expected: Vec<String> = expected.iter().map(|path| path.to_string()).collect();
            same(
                &format!("the listing of {prefix}"),
                self.list(prefix).await?,
                expected,
            )?;
        }
        Ok(())
    }

    async fn folders(&self) -> Kept {
        let names = ["a", "a-b", "a.b/c", "z"];
        for name in names {
            for number in 0..3 {
                self.put(&format!("folders/{name}/{number}.json"), b"x", None)
                    .await?;
            }
        }
        self.put("folders/beside.json", b"x", None).await?;
        let prefix = format!("{}/folders/", self.root);
        let seen = self.storage.list_folders(&prefix).await?;
        // In the order of whole locations: `/` sorts behind `-` and `.`.
        let expected = ["a-b", "a.b", "a", "z"].map(|name| format!("{prefix}{name}/"));
        same("the folders", seen.as_slice(), expected.as_slice())?;
        same(
            "folders of nothing",
            self.storage
                .list_folders(&format!("{}/nothing/", self.root))
                .await?,
            Vec::new(),
        )
    }

    async fn names(&self) -> Kept {
        let ascending = [
            "names/%2F%25/%C3%A9.json",
            "names/.hidden.topic/1.json",
            "names/a b/c+d.json",
            "names/order_date=2026-01-31/00000-a_b~c.parquet",
            "names/rate=100%/x",
            "names/web.clicks-v1/2/x..json",
            "names/é=日本/😀.parquet",
        ];
        for path in ascending {
            self.storage
                .put(&self.at(path), Bytes::from(path), Some("named"))
                .await?;
        }
        same(
            "the listing",
            self.list("names/").await?,
            ascending.map(str::to_owned).to_vec(),
        )?;
        for path in ascending {
            same(path, self.get(path).await?, Some(Bytes::from(path)))?;
            same(path, self.head(path).await?.attributes.as_deref(), Some("named"))?;
        }
        self.storage.delete(&ascending.map(|path| self.at(path))).await?;
        same(
            "the listing after the deletion",
            self.list("names/").await?,
            Vec::new(),
        )
    }

    async fn pages(&self) -> Kept {
        let mut expected: Vec<String> = (0..MANY)
            .map(|at| self.at(&format!("pages/{}/{at:05}", at % 3)))
            .collect();
        expected.sort();
        stream::iter(&expected)
            .map(|location| self.storage.put(location, Bytes::new(), None))
            .buffer_unordered(PUTS_AT_ONCE)
            .try_collect::<()>()
            .await?;

        let (prefix, mut seen, mut after) = (self.at("pages/"), Vec::new(), None::<String>);
        while seen.len() <= MANY {
            let page = self.storage.list_page(&prefix, after.as_deref()).await?;
            seen.extend(page.objects.into_iter().map(|object| object.location));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        same("the number of objects on all pages", seen.len(), MANY)?;
        same("the pages in order", seen == expected, true)?;

        let between = format!("{}-", expected[MANY - 3]);
        for (after, rest) in [(&expected[MANY - 3], 2), (&between, 2), (&expected[MANY - 1], 0)] {
            let page = self.storage.list_page(&prefix, Some(after)).await?;
            let seen: Vec<String> = page.objects.into_iter().map(|object| object.location).collect();
            same(
                &format!("the page after {after}"),
                seen.as_slice(),
                &expected[MANY - rest..],
            )?;
            same("a page after the last", page.next, None)?;
        }
        self.storage.delete(&expected).await?;
        same(
            "the listing after one deletion of all",
            self.list("pages/").await?,
            Vec::new(),
        )
    }

    async fn concurrent_puts(&self) -> Kept {
        let paths: Vec<String> = (0..64)
            .map(|at| format!("concurrent/{}/new/{at:02}", at % 4))
            .collect();
        let locations: Vec<String> = paths.iter().map(|path| self.at(path)).collect();
        let puts = locations
            .iter()
            .map(|at| self.storage.put(at, Bytes::from(at.clone()), Some("attributes")));
        for put in join_all(puts).await {
            put?;
        }
        for (path, location) in paths.iter().zip(locations) {
            same(path, self.get(path).await?, Some(Bytes::from(location)))?;
            same(
                path,
                self.head(path).await?.attributes.as_deref(),
                Some("attributes"),
            )?;
        }
        same(
            "the number of objects",
            self.list("concurrent/").await?.len(),
            paths.len(),
        )
    }

    async fn seen_whole(&self) -> Kept {
        let location = self.at("whole/a");
        let version = |byte: u8| Bytes::from(vec![byte; 40_000 + usize::from(byte) * 1_000]);
        self.storage.put(&location, version(0), None).await?;
        let puts = join_all((1..=16).map(|byte| self.storage.put(&location, version(byte), None)));
        let reads = join_all((0..64).map(|_| self.storage.get(&location, NO_LIMIT)));
        let (puts, reads) = futures::join!(puts, reads);
        for put in puts {
            put?;
        }
        for read in reads {
            let bytes = read?.ok_or_else(|| Broken("a read found nothing".to_owned()))?;
            let whole = bytes.first().is_some_and(|byte| bytes == version(*byte));
            same("one version, whole,", whole, true)?;
        }
        Ok(())
    }
}
