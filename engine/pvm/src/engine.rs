//! The compiler and runtime, and where instances have their memory.

use crate::limits::{MEMORY, TABLE_ELEMENTS, THREAD_STACK, WASM_STACK};
use crate::tuple::TARGET;
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
};

/// Instances whose memory is used again and again. Each keeps [`RESIDENT`] once it was used.
pub const SLOTS: u32 = 8;

/// Bytes of an instance's memory that are restored by copying: all that the component has from
/// the beginning. What an instance takes beyond is given back.
const RESIDENT: usize = 16 << 20;

/// Core instances of the component at most. It has some 40.
const CORE_INSTANCES: u32 = 64;

/// Tables of the component.
const TABLES: u32 = 2;

/// The compiler and runtime with the settings that the tuple names.
///
/// At most `slots` of its instances exist at once, and use the same memory again and again; 0: each
/// has fresh memory. The instances cannot tell the difference.
pub fn engine(slots: u32) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.strategy(Strategy::Cranelift);
    config.cranelift_opt_level(OptLevel::Speed);
    config.consume_fuel(true);
    config.cranelift_nan_canonicalization(true);
    config.wasm_relaxed_simd(false);
    config.concurrency_support(false);
    config.max_wasm_stack(WASM_STACK);
    // Compared with the stack although nothing here is async.
    config.async_stack_size(THREAD_STACK);
    // The text of a trap is fixed, so no address in the code is ever looked up.
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    if slots > 0 {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(slots)));
    }
    if let Some(target) = TARGET {
        config.target(target)?;
    }
    Engine::new(&config)
}

/// Memory that is mapped once. Between two instances it is restored by copying, not by unmapping:
/// pages that come and go interrupt all threads of the process, so that two validators that
/// executed at once took twice as long as one after the other.
fn pooling(slots: u32) -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::new();
    pooling
        .total_component_instances(slots)
        .total_core_instances(slots * CORE_INSTANCES)
        .total_memories(slots)
        .total_tables(slots * TABLES)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(1)
        .max_tables_per_component(TABLES)
        .max_memory_size(MEMORY)
        .table_elements(TABLE_ELEMENTS)
        .linear_memory_keep_resident(RESIDENT)
        .table_keep_resident(TABLE_ELEMENTS * size_of::<usize>());
    pooling
}
