use std::collections::HashMap;
use std::sync::Arc;

use frazil_core::{ErrorKind, NamespaceName, TableName};
use futures::future::join_all;
use iceberg::spec::{
    FormatVersion, NestedField, PartitionSpec, PrimitiveType, Schema, SortOrder, TableMetadata,
    TableMetadataBuilder, Type,
};

use super::{Broken, Kept, promise, refused, same};
use crate::{Catalog, Pointer};

/// Checks every promise of [`Catalog`]. Its namespaces are named `conformance_…` and must be unused; `warehouse` is
/// where tables would lie (no file is written).
pub async fn catalog(catalog: Arc<dyn Catalog>, warehouse: &str) {
    let suite = Suite {
        catalog: catalog.as_ref(),
        warehouse: warehouse.trim_end_matches('/'),
    };
    promise("a table that was never created is missing", suite.missing()).await;
    promise(
        "namespaces are made once and listed ascending",
        suite.namespaces(),
    )
    .await;
    promise("a created table is loaded as it was created", suite.creation()).await;
    promise(
        "a name that is taken is a conflict and stays unchanged",
        suite.taken(),
    )
    .await;
    promise("a swap moves the pointer", suite.swap()).await;
    promise(
        "a swap from a stale pointer is a conflict and changes nothing",
        suite.stale_swap(),
    )
    .await;
    promise(
        "of concurrent swaps from one pointer exactly one succeeds",
        suite.race(),
    )
    .await;
    promise(
        "of concurrent creations exactly one succeeds",
        suite.creation_race(),
    )
    .await;
    promise("tables are listed per namespace, ascending", suite.tables()).await;
    promise(
        "a dropped table is gone, and dropping it again is fine",
        suite.dropping(),
    )
    .await;
    promise("a swap of a dropped table is a conflict", suite.swap_after_drop()).await;
    promise(
        "a pointer of a dropped table is stale for its successor",
        suite.recreation(),
    )
    .await;
}

/// As many as try at the same time.
const RACERS: usize = 8;
/// Enough rounds to meet more than one order of events.
const ROUNDS: usize = 5;

struct Suite<'a> {
    catalog: &'a dyn Catalog,
    warehouse: &'a str,
}

impl Suite<'_> {
    /// A table's location of metadata `file`, and such metadata.
    fn metadata(&self, table: &TableName, file: &str) -> Result<(String, TableMetadata), Broken> {
        let location = format!("{}/{}/{}-0123", self.warehouse, table.namespace(), table.table());
        let id = NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long));
        let build = || {
            let schema = Schema::builder().with_fields([id.into()]).build()?;
            TableMetadataBuilder::new(
                schema,
                PartitionSpec::unpartition_spec().into_unbound(),
                SortOrder::unsorted_order(),
                location.clone(),
                FormatVersion::V2,
                HashMap::new(),
            )?
            .build()
        };
        let built = build().map_err(|error| Broken(format!("the suite's own metadata: {error}")))?;
        Ok((format!("{location}/metadata/{file}"), built.metadata))
    }

    fn name(&self, table: &str) -> Result<TableName, Broken> {
        Ok(TableName::new("conformance_a", table)?)
    }

    async fn try_create(&self, table: &TableName, file: &str) -> Result<frazil_core::Result<String>, Broken> {
        let (location, metadata) = self.metadata(table, file)?;
        Ok(self
            .catalog
            .create(table, &location, &metadata)
            .await
            .map(|()| location))
    }

    /// Creates the table and answers its pointer.
    async fn create(&self, table: &TableName, file: &str) -> Result<Pointer, Broken> {
        let location = self.try_create(table, file).await??;
        let pointer = self.load(table).await?;
        same(
            "the created table's metadata location",
            &pointer.metadata_location,
            &location,
        )?;
        Ok(pointer)
    }

    async fn try_swap(
        &self,
        table: &TableName,
        expected: &Pointer,
        file: &str,
    ) -> Result<frazil_core::Result<String>, Broken> {
        let (location, metadata) = self.metadata(table, file)?;
        let swapped = self.catalog.swap(table, expected, &location, &metadata).await;
        Ok(swapped.map(|()| location))
    }

    async fn load(&self, table: &TableName) -> Result<Pointer, Broken> {
        let pointer = self.catalog.load(table).await?;
        pointer.ok_or_else(|| Broken(format!("{table} is missing")))
    }

    async fn missing(&self) -> Kept {
        let name = TableName::new("conformance_none", "t")?;
        same("load", self.catalog.load(&name).await?, None)?;
        same(
            "the list of tables",
            self.catalog.tables(name.namespace()).await?,
            Vec::new(),
        )?;
        let pointer = Pointer {
            metadata_location: "x".to_owned(),
            version: "x".to_owned(),
        };
        refused(
            "a swap",
            self.try_swap(&name, &pointer, "1.json").await?,
            ErrorKind::Conflict,
        )?;
        self.catalog.drop_table(&name).await?;
        same("load after a refused swap", self.catalog.load(&name).await?, None)
    }

    async fn namespaces(&self) -> Kept {
        let names = ["conformance_b", "conformance_a", "conformance_a_b"].map(NamespaceName::new);
        for name in names.iter().chain(&names) {
            self.catalog.create_namespace(name).await?;
        }
        let seen = self.catalog.namespaces().await?;
        same("the list sorted", seen.is_sorted(), true)?;
        let ours: Vec<&str> = seen
            .iter()
            .map(NamespaceName::as_str)
            .filter(|name| name.starts_with("conformance_"))
            .collect();
        same(
            "the list",
            ours,
            vec!["conformance_a", "conformance_a_b", "conformance_b"],
        )
    }

    async fn creation(&self) -> Kept {
        let name = self.name("created")?;
        let pointer = self.create(&name, "1.json").await?;
        same("the pointer when loaded again", self.load(&name).await?, pointer)
    }

    async fn taken(&self) -> Kept {
        let name = self.name("taken")?;
        let pointer = self.create(&name, "1.json").await?;
        for file in ["1.json", "2.json"] {
            refused(
                "a second creation",
                self.try_create(&name, file).await?,
                ErrorKind::Conflict,
            )?;
        }
        same("the pointer", self.load(&name).await?, pointer)?;
        let elsewhere = TableName::new("conformance_b", "taken")?;
        self.create(&elsewhere, "1.json").await.map(drop)
    }

    async fn swap(&self) -> Kept {
        let name = self.name("swapped")?;
        let bystander = self.create(&self.name("bystander")?, "1.json").await?;
        let mut pointer = self.create(&name, "1.json").await?;
        for file in ["2.json", "3.json", "4.json"] {
            let location = self.try_swap(&name, &pointer, file).await??;
            let next = self.load(&name).await?;
            same("the metadata location", &next.metadata_location, &location)?;
            same(
                "the version stays the same after a swap",
                next.version == pointer.version,
                false,
            )?;
            pointer = next;
        }
        same(
            "another table's pointer",
            self.load(&self.name("bystander")?).await?,
            bystander,
        )
    }

    async fn stale_swap(&self) -> Kept {
        let name = self.name("stale")?;
        let first = self.create(&name, "1.json").await?;
        self.try_swap(&name, &first, "2.json").await??;
        let second = self.load(&name).await?;
        for file in ["2.json", "3.json"] {
            refused(
                "the swap",
                self.try_swap(&name, &first, file).await?,
                ErrorKind::Conflict,
            )?;
            same("the pointer after it", self.load(&name).await?, second.clone())?;
        }
        Ok(())
    }

    async fn race(&self) -> Kept {
        let name = self.name("race")?;
        let mut pointer = self.create(&name, "start.json").await?;
        for round in 0..ROUNDS {
            let files: Vec<String> = (0..RACERS).map(|racer| format!("{round}-{racer}.json")).collect();
            let swaps = join_all(files.iter().map(|file| self.try_swap(&name, &pointer, file))).await;
            pointer = self.one_winner(&name, swaps).await?;
        }
        Ok(())
    }

    async fn creation_race(&self) -> Kept {
        for round in 0..ROUNDS {
            let name = self.name(&format!("creation_race_{round}"))?;
            let files: Vec<String> = (0..RACERS).map(|racer| format!("{racer}.json")).collect();
            let creations = join_all(files.iter().map(|file| self.try_create(&name, file))).await;
            self.one_winner(&name, creations).await?;
        }
        Ok(())
    }

    async fn one_winner(
        &self,
        name: &TableName,
        results: Vec<Result<frazil_core::Result<String>, Broken>>,
    ) -> Result<Pointer, Broken> {
        let mut winners = Vec::new();
        for result in results {
            match result? {
                Ok(location) => winners.push(location),
                lost => refused("a loser", lost, ErrorKind::Conflict)?,
            }
        }
        same("the number of winners", winners.len(), 1)?;
        let pointer = self.load(name).await?;
        same(
            "the metadata location after the race",
            &pointer.metadata_location,
            &winners[0],
        )?;
        Ok(pointer)
    }

    async fn tables(&self) -> Kept {
        let namespace = NamespaceName::new("conformance_a_b");
        for table in ["orders_2", "orders", "a", "orders_10"] {
            self.create(&TableName::new(namespace.as_str(), table)?, "1.json")
                .await?;
        }
        let names = |tables: Vec<TableName>| tables.iter().map(TableName::to_string).collect::<Vec<_>>();
        let seen = names(self.catalog.tables(&namespace).await?);
        let expected =
            ["a", "orders", "orders_10", "orders_2"].map(|table| format!("conformance_a_b.{table}"));
        same("the list", seen, expected.to_vec())?;
        let seen = names(self.catalog.tables(&NamespaceName::new("conformance_b")).await?);
        same(
            "the list of another namespace",
            seen,
            vec!["conformance_b.taken".to_owned()],
        )
    }

    async fn dropping(&self) -> Kept {
        let name = self.name("dropped")?;
        self.create(&name, "1.json").await?;
        let neighbour = self.create(&self.name("dropped_not")?, "1.json").await?;
        for _ in 0..2 {
            self.catalog.drop_table(&name).await?;
            same("load", self.catalog.load(&name).await?, None)?;
        }
        let listed = self.catalog.tables(name.namespace()).await?;
        same("the dropped table listed", listed.contains(&name), false)?;
        same(
            "its neighbour",
            self.load(&self.name("dropped_not")?).await?,
            neighbour,
        )
    }

    async fn swap_after_drop(&self) -> Kept {
        let name = self.name("swap_after_drop")?;
        let pointer = self.create(&name, "1.json").await?;
        self.catalog.drop_table(&name).await?;
        refused(
            "the swap",
            self.try_swap(&name, &pointer, "2.json").await?,
            ErrorKind::Conflict,
        )?;
        same("load", self.catalog.load(&name).await?, None)
    }

    async fn recreation(&self) -> Kept {
        let name = self.name("recreated")?;
        let old = self.create(&name, "1.json").await?;
        self.catalog.drop_table(&name).await?;
        let new = self.create(&name, "another-1.json").await?;
        refused(
            "the swap",
            self.try_swap(&name, &old, "2.json").await?,
            ErrorKind::Conflict,
        )?;
        same("the pointer", self.load(&name).await?, new.clone())?;
        self.try_swap(&name, &new, "2.json")
            .await?
            .map(drop)
            .map_err(Broken::from)
    }
}
