import type { BoundView } from '#model/snapshot.ts'
import { conversionLimits } from './limits.ts'

/** More than ever rest at the same time. */
const viewsMax = 1_000

type Named = Pick<BoundView, 'binding_id'>

/** Leaves out shadows that failed, for some segments: the more, the more often they failed one after the other. */
export class ShadowRests {
  readonly #rests = new Map<string, { left: number; length: number }>()

  /** Whether the shadow is left out of a segment. Counts the segment. */
  skips({ binding_id }: Named): boolean {
    const rest = this.#rests.get(binding_id)
    if (rest === undefined || rest.left === 0) return false
    rest.left -= 1
    return true
  }

  add({ binding_id }: Named): void {
    const { shadowRestSegmentsMin: min, shadowRestSegmentsMax: max } = conversionLimits
    const length = Math.min(max, 2 * (this.#rests.get(binding_id)?.length ?? min / 2))
    if (this.#rests.size >= viewsMax) this.#rests.clear()
    this.#rests.set(binding_id, { left: length, length })
  }

  end({ binding_id }: Named): void {
    this.#rests.delete(binding_id)
  }
}
