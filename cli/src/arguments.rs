use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use frazil_config::Place as FilePlace;
use frazil_core::{SourceName, TopicName};
use uuid::Uuid;

mod dev;

pub(crate) use dev::Dev;
#[cfg(feature = "kafka")]
pub(crate) use dev::StartingPosition;

/// Kafka topics into Apache Iceberg tables.
///
/// Takes Kafka events as AWS Lambda delivers them, writes Parquet, and commits Iceberg snapshots that DuckDB, Spark,
/// PyIceberg and the rest read, each record once.
#[derive(Debug, Parser)]
#[command(
    name = "frazil",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  frazil run events/orders-avro.json          make a table of an event and look at it
  frazil status                               how every topic stands
  frazil show kafka.orders --columns id,total --limit 20
  frazil status orders --output json | jq .topics[0].freshness_ms

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 a topic is suspended and waits for you."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// The configuration [default: ./frazil.toml if there is one; env: FRAZIL_CONFIG]
    #[arg(long, global = true, value_name = "FILE|s3://…", value_parser = place())]
    pub(crate) config: Option<FilePlace>,
    /// Where the tables are: a directory, or s3://BUCKET/PREFIX [default: ./warehouse; env: FRAZIL_WAREHOUSE]
    #[arg(long, global = true, value_name = "DIR|s3://…", value_parser = place())]
    pub(crate) warehouse: Option<FilePlace>,
    /// The schema registry: a directory [default: schemas/ beside the event; env: FRAZIL_SCHEMAS]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) schemas: Option<PathBuf>,
    /// For people, or one JSON document on standard output
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

fn place() -> impl TypedValueParser<Value = FilePlace> {
    OsStringValueParser::new().map(FilePlace::of)
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ingest events, commit them and show the tables
    #[command(after_help = "\
Examples:
  frazil run events/orders-avro.json
  frazil run events/ --warehouse /data/warehouse     every *.json of a folder, by name
  frazil run event.json --schemas registry/          Avro schemas as registry/ids/7.avsc

Running the same event again adds nothing: what the table holds is recognised.")]
    Run(Events),
    /// Stage events without committing them
    #[command(after_help = "\
Examples:
  frazil ingest event-1.json event-2.json
  zcat event.json.gz | frazil ingest -       one event on standard input

What is staged becomes visible with `frazil commit`. Stops at the first event that fails: what follows it is \
not touched, so that offsets stay in order.")]
    Ingest(Events),
    /// Commit what is pending, and ingest what was parked
    #[command(after_help = "\
Examples:
  frazil commit                   every table
  frazil commit kafka.orders      one table

Any number of commits may run at once; each record becomes visible once.")]
    Commit {
        /// Only this table, such as kafka.orders
        table: Option<String>,
    },
    /// Read topics of a Kafka broker, as Lambda's event source mapping does, and commit
    #[command(after_help = "\
Examples:
  frazil dev --brokers localhost:9092 --topic orders
  frazil dev --brokers localhost:9092 --topic orders --once       to its end, and stop
  frazil dev --brokers localhost:9092 --topic orders --endpoint http://127.0.0.1:9000/2015-03-31/functions/ingest/invocations

Goes on where it stopped; the position is kept in the warehouse. Delivering again does no harm: what the table has \
is recognised. Ctrl-C finishes the event that is on its way, and commits.")]
    Dev(Dev),
    /// List the tables
    Tables,
    /// Show a table's columns, partitions and snapshots
    Describe {
        /// The table, such as kafka.orders; its namespace may be left out when only one has it
        table: String,
    },
    /// Show rows of a table
    #[command(after_help = "\
Examples:
  frazil show kafka.orders
  frazil show orders --columns _kafka_partition,_kafka_offset,total --limit 100
  frazil show orders --snapshot 4829604839201183745

Rows are those of the table's oldest files, in order of epoch, partition and offset.")]
    Show(Show),
    /// Show how topics stand: state and reason, offsets, what waits and since when
    Status {
        /// Only this topic, with its partitions
        topic: Option<String>,
        #[command(flatten)]
        source: Source,
    },
    /// Suspend and resume a topic, and answer its questions
    #[command(subcommand)]
    Topic(TopicCommand),
    /// List and inspect what is pending, parked, dropped or in quarantine
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
Examples:
  frazil pending                              everything
  frazil pending orders --place dropped       redeliveries of one topic, kept for 14 days
  frazil pending show 0190a0b0-c0d0-7000-8000-0123456789ab
  frazil pending quarantine 0190a0b0-c0d0-7000-8000-0123456789ab"
    )]
    Pending(Pending),
    /// Show the records of a table that cannot be read, or read them again after a fix
    #[command(after_help = "\
Examples:
  frazil dead-letters orders
  frazil dead-letters orders --code registry.unknown_schema --limit 100
  frazil dead-letters orders --retry --schemas registry/

A retry decodes the dead letters with today's schemas and settings, moves those that can be read now into the \
table, each once, and leaves the others where they are. It can be given again after a crash anywhere in it.")]
    DeadLetters(DeadLetters),
    /// Compare a topic's rows and dead letters with the ledger, offset by offset
    #[command(after_help = "\
Exit code 1 for offsets that are there twice, and for rows that the ledger does not know.

A gap is an offset that the ledger has and that is neither row nor dead letter. Kafka leaves gaps by itself \
(compacted topics, transaction markers), and so do records skipped on purpose and rows deleted later; where none \
of that is so, --expect-contiguous makes a gap a fault.")]
    Reconcile {
        /// The topic
        topic: String,
        #[command(flatten)]
        source: Source,
        /// Exit with 1 for gaps too
        #[arg(long)]
        expect_contiguous: bool,
    },
    /// Print the Iceberg schema that a source schema becomes, or what a new version of it would change
    #[command(after_help = "\
Examples:
  frazil schema order.avsc
  frazil schema 42 --schemas registry/ --output json    by its id; the specification's schema JSON
  frazil schema order.proto --message shop.Order --reference common/money.proto=money.proto
  frazil schema order-v1.avsc order-v2.avsc             is the change accepted, and what does it do?
  frazil schema order.json --topic orders               with this topic's settings of fields and names

Exit code 1 for a change that is refused: the topic would suspend.")]
    Schema(Schema),
    /// Validate frazil.toml: every fault at once, with key path and line
    ///
    /// Of topics whose schema is at hand (a file, a subject, TOPIC-value in a directory) it also says what Glue or Athena
    /// would not take, and which settings of fields name none.
    Check {
        /// The file
        #[arg(value_name = "CONFIG")]
        file: PathBuf,
        /// Ask registries over the network for schemas, too
        #[arg(long)]
        online: bool,
    },
    /// Put frazil.toml to where the functions read it
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ingest what Lambda gave up on: the objects of its on-failure destination
    #[command(after_help = "\
Examples:
  frazil replay s3://my-failures/aws/lambda/                  every object below
  frazil replay s3://my-failures/aws/lambda/x.json failed/    an object, and every *.json of a folder

Records fill the holes that they left, whatever their age; what the table holds already is recognised. Objects stay \
where they are. What is staged becomes visible with `frazil commit`, or within a minute on AWS.")]
    Replay {
        /// Objects or prefixes on S3, files or folders
        #[arg(required = true, value_name = "FAILED", value_parser = place())]
        failed: Vec<FilePlace>,
    },
}

/// What is done with the configuration of functions.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Validate a file, and put it and the files that it names to S3
    #[command(after_help = "\
Example:
  frazil config push frazil.toml s3://my-lake/frazil.toml

Functions with FRAZIL_CONFIG=s3://my-lake/frazil.toml use it within 15 seconds; they keep the last one that could be \
used. Turn on versions in the bucket to be able to go back.")]
    Push {
        /// The file
        #[arg(value_name = "CONFIG")]
        file: PathBuf,
        /// The object
        #[arg(value_name = "s3://…")]
        location: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Event files, folders of them, or - for one event on standard input
    #[arg(required = true, value_name = "EVENT.json")]
    pub(crate) events: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The table, such as kafka.orders; its namespace may be left out when only one has it
    pub(crate) table: String,
    /// At most so many rows
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    /// As the table was at this snapshot
    #[arg(long, value_name = "ID")]
    pub(crate) snapshot: Option<i64>,
    /// These columns, in this order
    #[arg(long, value_name = "a,b", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(crate) columns: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DeadLetters {
    /// The table, such as kafka.orders; its namespace may be left out when only one has it
    pub(crate) table: String,
    /// Only those with this code; may be given several times
    #[arg(long, value_name = "CODE")]
    pub(crate) code: Vec<String>,
    /// At most so many are shown
    #[arg(long, default_value_t = 10, value_name = "N", conflicts_with = "retry")]
    pub(crate) limit: u32,
    /// Read them again, and move those that can be read now into the table
    #[arg(long)]
    pub(crate) retry: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// A schema file (.avsc, .json: JSON Schema, .proto), or an id in the registry
    #[arg(value_name = "FILE|ID")]
    pub(crate) schema: String,
    /// The version that comes after it
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Protobuf: the full name of the message; needed where the file has several
    #[arg(long, value_name = "NAME")]
    pub(crate) message: Option<String>,
    /// What the schema calls another file that it needs; may be given several times
    #[arg(long, value_name = "NAME=FILE", value_parser = crate::commands::reference)]
    pub(crate) reference: Vec<(String, PathBuf)>,
    /// Map it with the settings of this topic
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Which cluster a topic is of.
#[derive(Debug, Clone, Args)]
pub(crate) struct Source {
    /// The topic's source, when several have a topic of this name
    #[arg(long = "source", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Pending {
    /// Only of this topic
    pub(crate) topic: Option<String>,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Only what is kept there
    #[arg(long, value_enum)]
    pub(crate) place: Vec<Place>,
    /// At most so many of each place
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) action: Option<PendingAction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// Staged, to be committed
    Pending,
    /// Events of suspended topics
    Parked,
    /// Judged to be redeliveries
    Dropped,
    /// Waiting for you
    Quarantine,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PendingAction {
    /// Show one descriptor or parked event
    Show {
        /// Its id
        id: Uuid,
    },
    /// Set a descriptor aside that stops its partitions; its files are kept
    Quarantine {
        /// Its id
        id: Uuid,
    },
    /// Put a descriptor that was set aside back: the next commit judges it
    Release {
        /// Its id
        id: Uuid,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Topic {
    /// The topic
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) source: Source,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Park what arrives, until it is resumed
    Suspend {
        #[command(flatten)]
        topic: Topic,
        /// Why, for whoever looks at it later
        #[arg(long, value_name = "TEXT", default_value = "suspended by hand")]
        reason: String,
    },
    /// Let it run again; what was parked is ingested with the next commit
    Resume {
        #[command(flatten)]
        topic: Topic,
        /// Take unreadable records as dead letters once, however many there are
        #[arg(long)]
        override_breaker: bool,
        /// After a table's history has moved (rollback, replaced table): what holds now
        #[arg(long, value_enum)]
        history: Option<History>,
        /// Make tables anew that are gone from the catalog
        #[arg(long)]
        forget_missing_tables: bool,
        /// Give up an adoption that has not changed any table yet
        #[arg(long)]
        abandon_adoption: bool,
    },
    /// Say that the group was reset: offsets that the table has are delivered again, and are dropped
    Replay {
        #[command(flatten)]
        topic: Topic,
    },
    /// Say that this is a new log (recreated topic, new cluster): its offsets start a new epoch
    #[command(after_help = "\
Suspends the topic, waits until nothing of the old log can be on its way, sorts what is pending, parked and \
dropped, and resumes. Give the command again until it says that the topic runs: it goes on where it stopped.")]
    Adopt {
        #[command(flatten)]
        topic: Topic,
        /// The life that is to begin: said again after it has begun, nothing happens [default: the next one]
        #[arg(long, value_name = "N")]
        into: Option<i32>,
        /// Which log everything belongs to of which nothing tells
        #[arg(long, value_enum)]
        unclear: Option<Life>,
        /// No ingest that began before runs any more: do not wait 15 minutes for it
        #[arg(long)]
        no_wait: bool,
    },
    /// Stage dropped descriptors again, when dropping them was wrong
    Undrop {
        #[command(flatten)]
        topic: Topic,
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<Uuid>,
        /// The life of the topic that their records belong to [default: the present one]
        #[arg(long, value_name = "N")]
        epoch: Option<i32>,
    },
}

/// What holds after a table's history has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum History {
    /// What is in the table now; backfills bring what is missing
    Keep,
    /// What the last commit wrote
    Restore,
}

/// One of the two logs of an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Life {
    /// The log that ended
    Old,
    /// The log that is adopted
    New,
}

impl Source {
    pub(crate) fn name(&self) -> Option<SourceName> {
        self.name.as_deref().map(SourceName::from)
    }
}

impl Topic {
    pub(crate) fn name(&self) -> TopicName {
        TopicName::from(self.topic.as_str())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn common_options_go_before_and_after_the_command() {
        for line in [
            "frazil --output json --warehouse w tables",
            "frazil tables --warehouse w --output json",
        ] {
            let common = parse(line).unwrap().common;
            assert_eq!(
                (common.output, common.warehouse),
                (Format::Json, Some(FilePlace::of("w"))),
                "{line}"
            );
        }
    }

    #[test]
    fn columns_are_cut_at_commas() {
        let Command::Show(show) = parse("frazil show orders --columns a,b --snapshot 7")
            .unwrap()
            .command
        else {
            panic!("not show");
        };
        assert_eq!(
            (show.columns, show.snapshot, show.limit),
            (vec!["a".to_owned(), "b".to_owned()], Some(7), 10)
        );
    }

    #[test]
    fn a_mapping_begins_with_lambdas_defaults() {
        let Command::Dev(dev) = parse("frazil dev --brokers b:9092 --topic orders --max-retries -1")
            .unwrap()
            .command
        else {
            panic!("not dev");
        };
        let milliseconds = (dev.batch_window.as_millis(), dev.commit_every.as_millis());
        assert_eq!((dev.batch_size, milliseconds), (100, (500, 60_000)));
        assert_eq!(
            (dev.max_retries, dev.max_record_age, dev.bisect),
            (-1, None, false)
        );
    }

    #[test]
    fn pending_lists_or_acts() {
        let pending = |line: &str| match parse(line).unwrap().command {
            Command::Pending(pending) => pending,
            other => panic!("{other:?}"),
        };
        let listed = pending("frazil pending orders --place parked --place dropped");
        assert_eq!(
            (listed.topic.as_deref(), listed.place),
            (Some("orders"), vec![Place::Parked, Place::Dropped])
        );
        let id = "0190a0b0-c0d0-7000-8000-0123456789ab";
        let acted = pending(&format!("frazil pending quarantine {id}"));
        assert!(
            matches!(acted.action, Some(PendingAction::Quarantine { id: given }) if given.to_string() == id)
        );
    }

    #[test]
    fn wrong_usage_is_refused_with_exit_code_2() {
        for (line, kind) in [
            ("frazil run", ErrorKind::MissingRequiredArgument),
            ("frazil shwo orders", ErrorKind::InvalidSubcommand),
            ("frazil show orders --limit 0", ErrorKind::ValueValidation),
            ("frazil show orders --limit many", ErrorKind::ValueValidation),
            ("frazil pending show not-an-id", ErrorKind::ValueValidation),
            ("frazil dev --topic orders", ErrorKind::MissingRequiredArgument),
            ("frazil dev --brokers b:9092", ErrorKind::MissingRequiredArgument),
            (
                "frazil dev --brokers b:9092 --topic t --batch-size 10001",
                ErrorKind::ValueValidation,
            ),
            (
                "frazil dev --brokers b:9092 --topic t --batch-window 301s",
                ErrorKind::ValueValidation,
            ),
            ("frazil tables --output xml", ErrorKind::InvalidValue),
            (
                "frazil topic undrop orders --epoch 0",
                ErrorKind::MissingRequiredArgument,
            ),
            ("frazil", ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!((error.kind(), error.exit_code()), (kind, 2), "{line}");
        }
        assert_eq!(parse("frazil --help").unwrap_err().exit_code(), 0);
    }
}
