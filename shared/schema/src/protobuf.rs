mod selector;

pub use selector::MessageSelector;
