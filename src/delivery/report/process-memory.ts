import { residentBytesOf, residentMemoryOf } from '#lib/resident-memory.ts'
import type { ProcessMemory } from '#model/node-protocol.ts'

/** Returns what this process and its workers have in memory, for control: delivery has no listener for metrics. */
export function readProcessMemory(workers: readonly number[]): ProcessMemory {
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage()
  return {
    resident_bytes: rss,
    resident_peak_bytes: residentMemoryOf(process.pid)?.peakBytes ?? rss,
    heap_used_bytes: heapUsed,
    heap_total_bytes: heapTotal,
    external_bytes: external,
    array_buffers_bytes: arrayBuffers,
    workers: workers.length,
    workers_resident_bytes: residentBytesOf(workers),
  }
}

/** Returns the processor time of this process since its start, user and system. */
export function readCpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
