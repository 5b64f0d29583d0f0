//! Metrics of one subject as a table.

/// Defines a struct of metrics, and the function that registers them in the order of the rows. A
/// row has the field, the type, the name and the help of a metric, and its first value unless that
/// is the type's default. A counter's name is without `_total`, which the encoder appends.
macro_rules! metrics {
    ($(#[$doc:meta])* struct $name:ident {
        $($field:ident: $type:ty = $metric:literal, $help:literal $(, $value:expr)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        struct $name {
            $($field: $type,)*
        }

        impl $name {
            fn register(to: &mut prometheus_client::registry::Registry) -> Self {
                $(
                    let $field: $type = $crate::telemetry::metrics!(@ $($value)?);
                    to.register($metric, $help, $field.clone());
                )*
                Self { $($field),* }
            }
        }
    };
    (@) => { <_>::default() };
    (@ $value:expr) => { $value };
}

pub(crate) use metrics;
