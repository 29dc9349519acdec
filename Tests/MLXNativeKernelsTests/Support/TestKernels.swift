/// User kernels in the Metal subset that every device compiles.
enum TestKernels {
    static let text = """
        #include <metal_stdlib>
        using namespace metal;

        pipeline_constant(bool, doubles, 0);
        pipeline_constant(uint, addend, 1);

        kernel void scale(
            device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant float& factor [[buffer(2)]],
            uint i [[thread_position_in_grid]]) {
          y[i] = x[i] * factor;
        }
        export_kernel(scale)

        kernel void specialized(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          x[i] = (doubles ? 2 * x[i] : x[i]) + addend;
        }
        export_kernel(specialized)

        kernel void sumOfGroup(
            device const uint* x [[buffer(0)]], device uint* sums [[buffer(1)]],
            threadgroup uint* shared [[threadgroup_memory(0)]], uint i [[thread_position_in_grid]],
            uint lane [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
            uint width [[threads_per_threadgroup]]) {
          shared[lane] = x[i];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          if (lane == 0) {
            uint sum = 0;
            for (uint j = 0; j < width; ++j) sum += shared[j];
            sums[group] = sum;
          }
        }
        export_kernel(sumOfGroup)

        // Waits about ten seconds at most for the gate to open, and writes its state.
        kernel void passGate(
            device atomic_uint* gate [[buffer(0)]], device uint* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
          uint opened = 0;
          for (uint j = 0; j < 40 && opened == 0; ++j) {
            for (uint k = 0; k < 1000000000u && opened == 0; ++k) {
              opened = atomic_load_explicit(gate, memory_order_relaxed);
            }
          }
          x[i] = opened;
        }
        export_kernel(passGate)

        // Only some threads reach the barrier, so the Host device stops the kernel.
        kernel void divergentBarrier(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          if (i < 16) threadgroup_barrier(mem_flags::mem_threadgroup);
          x[i] = 1;
        }
        export_kernel(divergentBarrier)
        """
}
