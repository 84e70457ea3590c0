/**
 * Durations as counts in bins, so that those of many processes add up.
 *
 * Law: the bins never change: they are stored. Each is a fifth wider than the one before, so a quantile is wrong by a tenth at most.
 */
import { safeSum } from './safe-sum.ts'

const binsPerDoubling = 4
/** The first bin ends here. */
const msMin = 0.1
/** The last bin has everything above 22 hours. */
export const durationBins = 120

export function binOf(ms: number): number {
  if (!(ms > msMin)) return 0
  return Math.min(durationBins - 1, Math.ceil(binsPerDoubling * Math.log2(ms / msMin)))
}

/** Returns a duration of which `share` (0 to 1) of the durations are at most as long, in ms. Null without durations. */
export function quantileOf(bins: Readonly<Record<string, number>>, share: number): number | null {
  const byBin = Object.entries(bins).map(([bin, count]) => [Number(bin), count] as const)
  const wanted = Math.max(1, share * safeSum(Object.values(bins)))
  let seen = 0
  for (const [bin, count] of byBin.toSorted(([one], [other]) => one - other)) {
    seen += count
    if (seen >= wanted) return round(middleOf(bin))
  }
  return null
}

function middleOf(bin: number): number {
  return msMin * 2 ** ((bin - 0.5) / binsPerDoubling)
}

/** To three digits: more would pretend to be exact. */
function round(ms: number): number {
  return Number(ms.toPrecision(3))
}
