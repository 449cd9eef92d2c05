mod rows;

pub use rows::{
    Comparison, Dictionary, EncodedFile, FileSettings, MAX_DECODED_BYTES, MAX_DECODED_ROWS, MAX_FILE_BYTES,
    MAX_LEAF_COLUMNS, RowIdentity, compare_rows, data_file_from_json, data_file_to_json, filter_rows,
    offsets_of, read_data_file, split_by_partition, write_data_file,
};
