/**
 * `inlet/client`: the management API and a producer, for Node and browsers.
 *
 * This is the public interface: what is not listed here may change at any time.
 */
// biome-ignore-start lint/performance/noBarrelFile: the one entry of the package

export type { CallOptions } from './bound.ts'
export { type Client, type ClientOptions, createClient } from './client.ts'
export type { CommittedReceipt } from './commit-watch.ts'
export { DeliveryError, type Receipt } from './delivery.ts'
export { ApiError, ConnectionError, type ErrorCode, type FieldError, InletError, TimeoutError } from './errors.ts'
export type { Schemas } from './generated/schema.ts'
export type { Listing } from './listing.ts'
export {
  BufferFullError,
  ClosedError,
  createProducer,
  type Producer,
  type ProducerOptions,
  type ProducerStats,
} from './producer.ts'
export { RecordError, type SendableRecord } from './record.ts'
// biome-ignore-end lint/performance/noBarrelFile: the one entry of the package
