/** Options of the scrub. */
import { GiB } from '#lib/bytes.ts'
import { bytes, integer, option } from '#lib/option-types.ts'

export const scrubOptions = {
  scrubIntervalHours: option(
    'INLET_SCRUB_INTERVAL_HOURS',
    '168',
    integer(0, 8_760),
    'how often delivery verifies what is on its node and what it delivered, against checksums; 0: never',
  ),
  scrubBytesPerSecond: option(
    'INLET_SCRUB_BYTES_PER_SECOND',
    '1MiB',
    bytes(0, 10 * GiB),
    'how much of delivered files it reads a second at most; 0: it compares sizes alone, and reads only markers',
  ),
} as const
