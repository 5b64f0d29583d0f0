//! The names that every module can use: functions, methods, the host.

use super::{Arena, Field, Id, RecordType, Type, Value};

macro_rules! builtins {
    ($($group:ident { $($(#[$doc:meta])* $variant:ident $name:literal,)* })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(in crate::actor) enum Builtin {
            $($($(#[$doc])* $variant,)*)*
        }

        impl Builtin {
            pub(in crate::actor) const ALL: &'static [Self] = &[$($(Self::$variant,)*)*];

            pub(in crate::actor) const fn name(self) -> &'static str {
                match self {
                    $($(Self::$variant => $name,)*)*
                }
            }

            $(pub(in crate::actor) fn $group(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            })*
        }
    };
}

builtins! {
    everywhere {
        Abs "abs",
        All "all",
        Any "any",
        Bool "bool",
        Chr "chr",
        Dict "dict",
        Dir "dir",
        DivMod "divmod",
        Enumerate "enumerate",
        Fail "fail",
        Field "field",
        FormatValue "format",
        GetAttr "getattr",
        HasAttr "hasattr",
        Hash "hash",
        Int "int",
        IsInstance "isinstance",
        JsonDecode "json_decode",
        JsonEncode "json_encode",
        Keccak256 "keccak256",
        Len "len",
        List "list",
        Max "max",
        Min "min",
        Ord "ord",
        Pow "pow",
        Print "print",
        Range "range",
        Record "record",
        Repr "repr",
        Reversed "reversed",
        Sorted "sorted",
        Str "str",
        Sum "sum",
        Tuple "tuple",
        Type "type",
        Zip "zip",
    }
    of_host {
        CancelTimer "cancel_timer",
        DeleteState "delete_state",
        Emit "emit",
        ExtendTimer "extend_timer",
        GetBalance "get_balance",
        GetBlockHeight "get_block_height",
        GetMru "get_mru",
        GetState "get_state",
        GetTimestampMs "get_timestamp_ms",
        Log "log",
        Randomness "randomness",
        ScheduleTimer "schedule_timer",
        ScheduleTimerEx "schedule_timer_ex",
        SendMessage "send_message",
        SetState "set_state",
        SetTimeout "set_timeout",
        SubmitJob "submit_job",
        Transfer "transfer",
    }
    of_mock {
        MockAccount "account",
        MockAdvance "advance",
        MockAssume "assume",
        MockBound "bound",
        MockCall "call",
        MockCharge "charge",
        MockDeploy "deploy",
        MockEvents "events",
        MockFails "fails",
        MockFires "fires",
        MockFund "fund",
        MockJobs "jobs",
        MockLog "log",
        MockMessages "messages",
        MockPolicy "policy",
        MockTimers "timers",
        MockTransfers "transfers",
    }
}

impl Builtin {
    /// Whether the function can be used as the type of the values that it makes.
    pub(in crate::actor) const fn is_type(self) -> bool {
        matches!(
            self,
            Self::Bool
                | Self::Dict
                | Self::Int
                | Self::List
                | Self::Range
                | Self::Str
                | Self::Tuple
        )
    }

    /// Whether a value has the type that the function makes.
    pub(in crate::actor) const fn makes(self, value: Value) -> bool {
        match self {
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Dict => matches!(value, Value::Dict(_)),
            Self::Int => matches!(value, Value::Int(_) | Value::Big(_)),
            Self::List => matches!(value, Value::List(_)),
            Self::Range => matches!(value, Value::Range(_)),
            Self::Str => matches!(value, Value::Text(_)),
            Self::Tuple => matches!(value, Value::Tuple(_)),
            _ => false,
        }
    }
}

macro_rules! methods {
    ($($kind:ident { $($variant:ident $name:literal,)* })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::actor) enum Method {
            $($($variant,)*)*
        }

        impl Method {
            /// Kinds of values and the names of their methods.
            pub(in crate::actor) const ALL: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($kind), &[$($name),*]),)*];

            pub(in crate::actor) const fn name(self) -> &'static str {
                match self {
                    $($(Self::$variant => $name,)*)*
                }
            }

            pub(in crate::actor) fn find(of: Value, name: &str) -> Option<Self> {
                match of {
                    $(Value::$kind(_) => match name {
                        $($name => Some(Self::$variant),)*
                        _ => None,
                    },)*
                    // `dict.fromkeys` is a method of the type itself; a dict has it too.
                    Value::Builtin(Builtin::Dict) if name == "fromkeys" => Some(Self::DictFromKeys),
                    _ => None,
                }
            }

            pub(in crate::actor) fn names(of: Value) -> &'static [&'static str] {
                match of {
                    $(Value::$kind(_) => &[$($name),*],)*
                    _ => &[],
                }
            }
        }
    };
}

methods! {
    Text {
        Capitalize "capitalize",
        Center "center",
        Count "count",
        Elems "elems",
        EndsWith "endswith",
        Find "find",
        Format "format",
        IndexOf "index",
        IsAlnum "isalnum",
        IsAlpha "isalpha",
        IsAscii "isascii",
        IsDigit "isdigit",
        IsLower "islower",
        IsSpace "isspace",
        IsTitle "istitle",
        IsUpper "isupper",
        Join "join",
        LeftJustify "ljust",
        Lower "lower",
        LeftStrip "lstrip",
        Partition "partition",
        RemovePrefix "removeprefix",
        RemoveSuffix "removesuffix",
        Replace "replace",
        RightFind "rfind",
        RightIndex "rindex",
        RightJustify "rjust",
        RightPartition "rpartition",
        RightSplit "rsplit",
        RightStrip "rstrip",
        Split "split",
        SplitLines "splitlines",
        StartsWith "startswith",
        Strip "strip",
        SwapCase "swapcase",
        Title "title",
        Upper "upper",
        FillZeros "zfill",
    }
    List {
        ListAppend "append",
        ListClear "clear",
        ListCopy "copy",
        ListCount "count",
        ListExtend "extend",
        ListIndex "index",
        ListInsert "insert",
        ListPop "pop",
        ListRemove "remove",
        ListReverse "reverse",
        ListSort "sort",
    }
    Tuple {
        TupleCount "count",
        TupleIndex "index",
    }
    Dict {
        DictClear "clear",
        DictCopy "copy",
        DictFromKeys "fromkeys",
        DictGet "get",
        DictItems "items",
        DictKeys "keys",
        DictPop "pop",
        DictPopItem "popitem",
        DictSetDefault "setdefault",
        DictUpdate "update",
        DictValues "values",
    }
}

/// A name whose attributes are functions or types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum Namespace {
    /// `pvm_host`
    Host,
    /// `typing`
    Typing,
    /// `mock`, which works only in tests.
    Mock,
}

impl Namespace {
    pub(in crate::actor) fn members(self) -> impl Iterator<Item = &'static str> {
        let of = move |builtin: &&Builtin| {
            self.member(builtin.name()) == Some(Value::Builtin(**builtin))
        };
        Builtin::ALL.iter().filter(of).map(|builtin| builtin.name())
    }

    pub(in crate::actor) fn member(self, name: &str) -> Option<Value> {
        match self {
            Self::Host => Builtin::of_host(name)
                .or(match name {
                    "json_decode" => Some(Builtin::JsonDecode),
                    "json_encode" => Some(Builtin::JsonEncode),
                    "keccak256" => Some(Builtin::Keccak256),
                    _ => None,
                })
                .map(Value::Builtin),
            Self::Mock => Builtin::of_mock(name).map(Value::Builtin),
            Self::Typing => match name {
                "Any" => Some(Value::Type(known::ANY)),
                "Callable" => Some(Value::Type(known::CALLABLE)),
                "Iterable" => Some(Value::Type(known::ITERABLE)),
                _ => None,
            },
        }
    }
}

/// Objects that every module's arena begins with.
pub(in crate::actor) mod known {
    use super::{Arena, Builtin, Field, Id, RecordType, Type, Value};

    pub(super) const ANY: Id = Id::known(0);
    pub(super) const CALLABLE: Id = Id::known(1);
    pub(super) const ITERABLE: Id = Id::known(2);
    pub(super) const CONTEXT: Id = Id::known(3);
    pub(in crate::actor) const GBA_CONTEXT: Id = Id::known(0);
    pub(in crate::actor) const TX_FEE_PARAMS: Id = Id::known(1);

    /// Fields of the context that a gas bidding agent is asked with (CIP-1 §7.2).
    pub const GBA_CONTEXT_FIELDS: [&str; 8] = [
        "trigger_block_height",
        "current_block_height",
        "basefee_cycle",
        "basefee_cell",
        "basefee_lane_timer",
        "last_block_cycle_usage",
        "previous_block_p50_priority_tip_per_cycle",
        "owner_actor_balance",
    ];
    /// Fields of the agent's answer (CIP-1 §7.1).
    pub const TX_FEE_PARAMS_FIELDS: [&str; 4] = [
        "max_fee_per_cycle",
        "max_priority_fee_per_cycle",
        "max_fee_per_cell",
        "max_priority_fee_per_cell",
    ];

    /// An arena with only these objects.
    pub(in crate::actor) fn arena() -> Arena {
        let mut arena = Arena::default();
        for of in [Type::Any, Type::Callable, Type::Iterable, Type::Context] {
            arena.type_(of);
        }
        let records = [
            ("GBAContext", GBA_CONTEXT_FIELDS.as_slice()),
            ("TxFeeParams", TX_FEE_PARAMS_FIELDS.as_slice()),
        ];
        for (name, fields) in records {
            let annotation = Value::Builtin(Builtin::Int);
            let field =
                |name: &&str| Field { name: (*name).into(), annotation, default: Value::Unset };
            let fields = fields.iter().map(field).collect();
            arena.record_type(RecordType { name: Some(name.into()), fields });
        }
        arena
    }
}

/// The value of a name that the module does not define.
pub(in crate::actor) fn universe(name: &str) -> Option<Value> {
    Some(match name {
        "None" => Value::None,
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "pvm_host" => Value::Namespace(Namespace::Host),
        "typing" => Value::Namespace(Namespace::Typing),
        "mock" => Value::Namespace(Namespace::Mock),
        "Context" => Value::Type(known::CONTEXT),
        "GBAContext" => Value::RecordType(known::GBA_CONTEXT),
        "TxFeeParams" => Value::RecordType(known::TX_FEE_PARAMS),
        _ => Value::Builtin(Builtin::everywhere(name)?),
    })
}
