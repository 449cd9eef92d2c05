use frazil_core::TopicName;

use super::*;
use crate::Config;

fn parse(text: &str) -> Config {
    match Config::parse(text, Path::new("/etc/frazil/frazil.toml")) {
        Ok(config) => config,
        Err(faults) => panic!("{text}\n{faults}"),
    }
}

fn variable(name: &str) -> SecretSource {
    SecretSource::Variable(name.to_owned())
}

#[test]
fn each_kind_has_its_keys() {
    let config = parse(
        r#"
        [registries.files]
        path = "schemas"
        [registries.cloud]
        kind = "confluent"
        urls = ["https://a.example", "http://b.example:8081/api"]
        username = "KEY"
        password_env = "REGISTRY_PASSWORD"
        ca_file = "/ca.pem"
        identity_file = "client.pem"
        timeout = "2s"
        [registries.karapace]
        kind = "confluent"
        urls = ["https://karapace.example"]
        token_env = "FRAZIL_SECRET_TOKEN"
        identity_env = "IDENTITY"
        [registries.aws]
        kind = "glue"
        region = "eu-central-1"
        registry_name = "shop"
        [registries.aws-default]
        kind = "glue"
        "#,
    );
    let accesses: Vec<_> = config
        .registries()
        .iter()
        .map(|registry| (registry.name().as_str(), registry.access().clone()))
        .collect();
    let expected = [
        (
            "files",
            RegistryAccess::Directory {
                path: "/etc/frazil/schemas".into(),
            },
        ),
        (
            "cloud",
            RegistryAccess::Confluent(ConfluentAccess {
                urls: vec![
                    "https://a.example".to_owned(),
                    "http://b.example:8081/api".to_owned(),
                ],
                auth: RegistryAuth::Basic {
                    username: "KEY".to_owned(),
                    password: variable("REGISTRY_PASSWORD"),
                },
                ca_file: Some("/ca.pem".into()),
                identity: Some(IdentitySource::File("/etc/frazil/client.pem".into())),
                timeout_ms: DurationMs(2_000),
            }),
        ),
        (
            "karapace",
            RegistryAccess::Confluent(ConfluentAccess {
                urls: vec!["https://karapace.example".to_owned()],
                auth: RegistryAuth::Bearer(variable("FRAZIL_SECRET_TOKEN")),
                ca_file: None,
                identity: Some(IdentitySource::Secret(variable("IDENTITY"))),
                timeout_ms: DurationMs(10_000),
            }),
        ),
        (
            "aws",
            RegistryAccess::Glue {
                region: Some("eu-central-1".to_owned()),
                registry_name: "shop".to_owned(),
            },
        ),
        (
            "aws-default",
            RegistryAccess::Glue {
                region: None,
                registry_name: "default-registry".to_owned(),
            },
        ),
    ];
    assert_eq!(accesses, expected);
}

#[track_caller]
fn check_fault(text: &str, fault: &str) {
    let faults = Config::parse(text, Path::new("f")).unwrap_err();
    assert_eq!(faults.to_string(), format!("f:{fault}"), "{text}");
}

#[test]
fn faults_name_the_way_out_and_never_a_secret() {
    let confluent = "[registries.r]\nkind = \"confluent\"\nurls = [\"https://r\"]\n";
    for (rest, fault) in [
        (
            "username = \"me\"",
            "4:1: registries.r.username: a user needs a password, and a password a user; write username and password_env",
        ),
        (
            "username = \"me\"\npassword_env = \"P\"\ntoken_env = \"T\"",
            "6:1: registries.r.token_env: a token stands instead of user and password; remove one of them",
        ),
        (
            "password = \"hunter2\"",
            "4:1: registries.r.password: unknown key; it belongs in an environment variable, whose name stands here: \
             password_env, token_env",
        ),
        (
            "username = \"me\"\npassword_env = \"hunter-2!\"",
            "5:1: registries.r.password_env: not the name of an environment variable; write the variable's name here, \
             such as \"REGISTRY_PASSWORD\", and the secret into the variable",
        ),
        (
            "identity_file = \"a\"\nidentity_env = \"A\"",
            "5:1: registries.r.identity_env: identity_file says it too; remove one of them",
        ),
        (
            "region = \"x\"",
            "4:1: registries.r.region: a registry of kind \"confluent\" has no region; remove it, or write kind = \"glue\"",
        ),
        (
            "timeout = \"1h\"",
            "4:1: registries.r.timeout: 1h is not between 100ms and 1m",
        ),
        (
            "token_secret = \"x\"",
            "4:1: registries.r.token_secret: credentials in Secrets Manager: this version does not have it yet; remove it",
        ),
    ] {
        check_fault(&format!("{confluent}{rest}"), fault);
    }
    for (text, fault) in [
        (
            "[registries.r]\nkind = \"confluent\"",
            "1:13: registries.r: nothing says where it is; add urls = [\"https://…\"]",
        ),
        (
            "[registries.r]",
            "1:13: registries.r: nothing says where it is; add path, or urls and kind = \"confluent\"",
        ),
        (
            "[registries.r]\nkind = \"confluent\"\nurls = [\"https://me:hunter2@r\"]",
            "3:9: registries.r.urls[0]: the address holds a name or a password; remove it from the address; use username \
             and password_env",
        ),
        (
            "[registries.r]\nkind = \"confluent\"\nurls = [\"r:8081\"]",
            "3:9: registries.r.urls[0]: \"r:8081\" is not the address of a registry; write https://HOST[:PORT][/PATH]",
        ),
        (
            "[registries.main]\npath = \"x\"\n[topics.a]\nregistry = \"mian\"",
            "4:1: topics.a.registry: there is no registry \"mian\"; did you mean \"main\"?",
        ),
        (
            "[defaults]\nregistry = \"main\"",
            "2:1: defaults.registry: there is no registry \"main\"; add [registries.main]",
        ),
        (
            "[registries.a]\npath = \"x\"\n[registries.b]\npath = \"y\"\n[topics.t]\nformat = \"avro\"",
            "5:9: topics.t: no registry is named, and there are several; add registry = \"NAME\" to the topic or to \
             [defaults]",
        ),
        (
            "[registries.\"a b\"]\npath = \"x\"",
            "1:13: registries.\"a b\": not the name of a registry; use 1 to 64 of a-z, A-Z, 0-9, `_` and `-`",
        ),
    ] {
        check_fault(text, fault);
    }
}

#[test]
fn a_topic_has_the_registry_that_it_names_or_the_only_one() {
    let one = "[registries.a]\npath = \"x\"\n";
    let two = "[registries.a]\npath = \"x\"\n[registries.b]\npath = \"y\"\n";
    for (text, expected) in [
        (String::new(), None),
        (one.to_owned(), Some("a")),
        (format!("{two}[topics.t]\nregistry = \"b\""), Some("b")),
        (format!("{two}[defaults]\nregistry = \"b\""), Some("b")),
        (format!("{two}[topics.t]\nformat = \"json\""), None),
    ] {
        let config = parse(&text);
        let settings = config
            .topic(config.sources()[0].name(), &TopicName::new("t"))
            .unwrap();
        assert_eq!(
            settings.registry.as_ref().map(RegistryName::as_str),
            expected,
            "{text}"
        );
    }
    // A topic that the file does not name is refused when it comes.
    let config = parse(two);
    let error = config
        .topic(config.sources()[0].name(), &TopicName::new("t"))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.message(), "no registry is named, and there are several");
}

#[test]
fn secrets_come_from_the_environment() {
    let lookup = |name: &str| match name {
        "SET" => Some("hunter2".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    assert_eq!(variable("SET").read_from(lookup).unwrap().expose(), "hunter2");
    for name in ["EMPTY", "ABSENT"] {
        let error = variable(name).read_from(lookup).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot use the environment: the variable {name}, which the configuration names, is not set; set it \
                 where Frazil runs"
            )
        );
    }
}
