/** Options of delivery. */
import { GiB, MiB } from '#lib/bytes.ts'
import { bytes, integer, option } from '#lib/option-types.ts'

export const deliveryOptions = {
  deliveryParallel: option('INLET_DELIVERY_PARALLEL', '2', integer(1, 64), 'number of segments to convert in parallel'),
  deliveryMemoryBytes: option(
    'INLET_DELIVERY_MEMORY_BYTES',
    '384MiB',
    bytes(192 * MiB, 256 * GiB),
    'memory for conversions; those that need more wait or use temporary space on disk',
  ),
  dedupeBytesMax: option(
    'INLET_DEDUPE_BYTES_MAX',
    '4GiB',
    bytes(MiB, 1024 * GiB),
    'disk of a node for the keys of views with `dedupe_within`, shared by account; a key takes 30 to 45 bytes. Beyond it, windows are shorter than views say',
  ),
} as const
