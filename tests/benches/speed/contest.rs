//! One case: ours and everybody else, turn by turn.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use frazil_kafka::EventBuffer;
use frazil_table::FileSettings;

use crate::event::{event_json, framed};
use crate::generate::Case;
use crate::pipeline::Pipeline;
use crate::python::Python;
use crate::readers::{Trees, skip, source};

/// What is measured, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Parse,
    Base64,
    Decode,
    Skip,
    KafkaColumns,
    Write,
    WritePlain,
    Whole,
    Trees,
    PythonDecode,
    PythonTable,
    PythonWrite,
}

const PARTS: usize = Part::PythonWrite as usize + 1;

pub(crate) struct Contest {
    pub(crate) case: Case,
    pub(crate) raw_bytes: usize,
    pub(crate) file_bytes: usize,
    values: Vec<Vec<u8>>,
    encoded: Vec<String>,
    event: String,
    pipeline: Pipeline,
    trees: Trees,
    python: Python,
    times: [Vec<Duration>; PARTS],
}

impl Contest {
    pub(crate) fn new(case: Case, orders: usize) -> Result<Self> {
        let values = case.values(orders);
        let framed: Vec<Vec<u8>> = values.iter().map(|value| framed(case, value)).collect();
        Ok(Self {
            case,
            raw_bytes: values.iter().map(Vec::len).sum(),
            file_bytes: 0,
            encoded: framed
                .iter()
                .map(|value| base64_simd::STANDARD.encode_to_string(value))
                .collect(),
            event: event_json(&framed),
            pipeline: Pipeline::new(source(case)),
            trees: Trees::new(case),
            python: Python::start(case, &framed).with_context(|| format!("{case} in Python"))?,
            values,
            times: Default::default(),
        })
    }

    pub(crate) fn event_bytes(&self) -> usize {
        self.event.len()
    }

    /// Everybody's turn.
    pub(crate) fn round(&mut self) -> Result<()> {
        let (pipeline, settings) = (&self.pipeline, FileSettings::default());
        let plain = FileSettings {
            zstd_level: None,
            ..settings.clone()
        };
        let json = self.event.as_bytes();
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json)?;
        let batch = pipeline.decode(&event);
        let (mut scratch, mut file_bytes) = (EventBuffer::default(), 0);
        scratch.parse(json)?; // a function's buffer has grown with its first event

        let mut note = |part: Part, time: Duration| self.times[part as usize].push(time);
        note(
            Part::Parse,
            timed(|| scratch.parse(black_box(json)).expect("an event").record_count()),
        );
        note(
            Part::Base64,
            timed(|| {
                let decode = |text: &String| base64_simd::STANDARD.decode_to_vec(text).expect("base64").len();
                self.encoded.iter().map(decode).sum::<usize>()
            }),
        );
        note(Part::Decode, timed(|| pipeline.decode(black_box(&event))));
        note(
            Part::Skip,
            timed(|| {
                let skipped = self.values.iter().map(|value| skip(self.case, black_box(value)));
                skipped.sum::<usize>()
            }),
        );
        note(
            Part::KafkaColumns,
            timed(|| pipeline.decode_nothing(black_box(&event))),
        );
        note(
            Part::Write,
            timed(|| pipeline.write(black_box(&batch), &settings)),
        );
        note(
            Part::WritePlain,
            timed(|| pipeline.write(black_box(&batch), &plain)),
        );
        note(
            Part::Whole,
            timed(|| {
                let event = scratch.parse(black_box(json)).expect("an event");
                file_bytes = pipeline.write(&pipeline.decode(&event), &settings);
            }),
        );
        note(
            Part::Trees,
            timed(|| {
                self.values
                    .iter()
                    .for_each(|value| self.trees.read(black_box(value)))
            }),
        );
        let python = self.python.turn()?;
        note(Part::PythonDecode, python.decode);
        note(Part::PythonTable, python.table);
        note(Part::PythonWrite, python.write);
        self.file_bytes = file_bytes;
        Ok(())
    }

    /// The median.
    pub(crate) fn time(&self, part: Part) -> Duration {
        let mut times = self.times[part as usize].clone();
        times.sort_unstable();
        times[times.len() / 2]
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    let made = black_box(work());
    let time = started.elapsed();
    drop(made);
    time
}
