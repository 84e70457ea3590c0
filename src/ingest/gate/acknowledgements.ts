import { Durations } from '#lib/durations.ts'

/** In seconds. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Returns a histogram of how long records that had arrived completely waited for their acknowledgement. */
export function acknowledgementDurations(): Durations {
  return new Durations(bounds)
}
