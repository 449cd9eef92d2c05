use frazil_core::{Error, ErrorKind, Result};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};

/// How data files are encoded. The default is what measurement chose.
///
/// Measured over the rows of the bench `parquet` (45,072 orders with Kafka's columns), on the Parquet encoder
/// itself, one core of a busy machine, fastest of 180 runs; relative to the default (27 ms, 1.08 MB):
///
/// | setting | time | size |
/// | --- | --- | --- |
/// | parquet-rs as it comes, with zstd 1 (dictionary everywhere, page statistics) | 1.44 | 1.51 |
/// | dictionary everywhere | 1.50 | 1.51 |
/// | no dictionary | 1.02 | 1.10 |
/// | zstd 3 | 1.15 | 1.03 |
/// | uncompressed | 0.65 | 3.67 |
/// | page statistics | 1.04 | 1.00 |
/// | pages of 128 kB | 0.97 | 1.01 |
/// | no statistics at all (not offered: bounds come from them) | 0.80 | 1.00 |
/// | offsets, ids and timestamps delta-encoded (not offered, see below) | 0.88 | 0.82 |
///
/// Differences below 0.05 are noise.
///
/// Per column, a dictionary makes unique values slower to write and larger (ids 1.7 times the time and 2.8
/// times the size, keys 2.0 and 3.4, timestamps 2.0 and 1.9), and repeated strings faster and smaller (a status
/// 0.8 and 0.28). Constant columns such as the epoch are a few hundred bytes either way.
///
/// Pages have only the encodings of Parquet's first version, plain and dictionary. Delta encoding would make an
/// offset column a hundred times smaller, but the vectorized readers of Iceberg before 1.10 (Spark on many EMR
/// and Glue versions) fail on it: apache/iceberg#7162, #13391.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// zstd level, 1 to 22; `None` writes pages as they are.
    pub zstd_level: Option<i32>,
    /// Which columns get a dictionary.
    pub dictionary: Dictionary,
    /// Statistics per page (a column index) and not only per column chunk. They let a reader skip pages of a
    /// large, sorted file; a file of one event has one to three pages per column, and nothing to skip.
    pub page_statistics: bool,
    /// A row group is closed when it has about this many encoded bytes.
    pub row_group_bytes: usize,
    /// A data page is closed when it has about this many bytes before compression.
    pub page_bytes: usize,
    /// The table's sort order that the rows are in, if they are in one.
    pub sort_order_id: Option<i32>,
}

/// Which columns are dictionary-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dictionary {
    /// Columns in which a sample of the values repeats.
    Sampled,
    /// All columns, until their dictionary is full.
    Always,
    /// None.
    Never,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            zstd_level: Some(1),
            dictionary: Dictionary::Sampled,
            page_statistics: false,
            row_group_bytes: 128 * 1024 * 1024,
            page_bytes: 1024 * 1024,
            sort_order_id: None,
        }
    }
}

impl FileSettings {
    /// The Parquet properties, without the choices per column.
    pub(super) fn properties(&self) -> Result<WriterPropertiesBuilder> {
        let compression = match self.zstd_level {
            None => Compression::UNCOMPRESSED,
            Some(level) => Compression::ZSTD(ZstdLevel::try_new(level).map_err(|cause| {
                Error::new(
                    ErrorKind::Invalid,
                    "write a data file",
                    format!("{level} is not a zstd level"),
                )
                .with_hint("use 1 to 22")
                .with_source(cause)
            })?),
        };
        let statistics = if self.page_statistics {
            EnabledStatistics::Page
        } else {
            EnabledStatistics::Chunk
        };
        Ok(WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(compression)
            .set_statistics_enabled(statistics)
            .set_offset_index_disabled(!self.page_statistics)
            .set_dictionary_enabled(self.dictionary == Dictionary::Always)
            .set_max_row_group_bytes(Some(self.row_group_bytes))
            .set_data_page_size_limit(self.page_bytes)
            // 64 bytes hold the 16 characters that a bound keeps, whatever their width in UTF-8.
            .set_statistics_truncate_length(Some(64)))
    }
}
