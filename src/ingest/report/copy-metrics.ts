/** Metrics of the copy store of a node. A node without one has none. */
import type { Registry } from 'prom-client'
import type { Copies } from '#copies/copies.ts'
import { observableMetrics } from '#lib/metrics.ts'

export function registerCopyMetrics(registry: Registry, copies: Copies): void {
  const { gauge, histograms } = observableMetrics(registry)
  histograms('inlet_copies_put_seconds', 'time until the copy store has an object, repetitions included', 'store', () => [
    ['copies', copies.puts],
  ])
  gauge('inlet_copies_objects_in_flight', 'objects on their way to the copy store', () => copies.objectsInFlight)
  gauge('inlet_copies_waiting_bytes', 'bytes of acknowledgements that wait for the copy store', () => copies.waitingBytes)
  gauge('inlet_copies_objects', 'objects in the copy store that are not removed yet', () => copies.objects)
  gauge('inlet_copies_bytes', 'bytes of records in these objects, before compression', () => copies.bytes)
  gauge('inlet_copies_oldest_seconds', 'age of the oldest of these objects', () => copies.oldestMs / 1000)
  gauge('inlet_copies_refusing', '1 while records that need a copy are refused', () => (copies.refusal === undefined ? 0 : 1))
}
