import type { ViewOutcome } from '#model/commit.ts'
import type { BoundView } from '#model/snapshot.ts'

/** More than ever fail at the same time. */
const viewsMax = 10_000

type Named = Pick<BoundView, 'view_id' | 'version'>

/**
 * Remembers which views were too expensive when they were last built. Such a view is built apart from others, because together they would wait
 * for it as many times as long.
 */
export class ExpensiveViews {
  readonly #keys = new Set<string>()

  /** Returns their positions. */
  among(views: readonly Named[]): readonly number[] {
    return views.flatMap((view, position) => (this.#keys.has(keyOf(view)) ? position : []))
  }

  add(view: Named): void {
    if (this.#keys.size >= viewsMax) this.#keys.clear()
    this.#keys.add(keyOf(view))
  }

  learn(outcomes: readonly ViewOutcome[]): void {
    for (const { view_id, view_version: version, failed, last_error } of outcomes) {
      if (failed > 0 && last_error?.code === 'too_expensive') this.add({ view_id, version })
      else this.#keys.delete(keyOf({ view_id, version }))
    }
  }
}

function keyOf({ view_id, version }: Named): string {
  return `${view_id} v${version}`
}
