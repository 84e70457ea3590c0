/** How a conversion can fail, other than by a fault of the node (transient-error.ts) or a damaged segment. */
import type { BoundView } from '#model/snapshot.ts'

/** A required view failed on the segment as a whole. The segment must not be committed without it: see policy.ts. */
export class RequiredViewFailed extends Error {
  override readonly name = 'RequiredViewFailed'
  readonly view: BoundView
  readonly reason: string

  constructor(view: BoundView, cause: unknown) {
    // Not set as the cause, because loggers would print the error's message twice, with all its lines.
    const reason = firstLine(cause)
    super(`the required view ${view.name} v${view.version} failed: ${reason}; delivery waits until it succeeds or is detached`)
    this.view = view
    this.reason = reason
  }
}

/** The view of a job failed as a whole on the records of a unit. */
export class UnitViewFailed extends Error {
  override readonly name = 'UnitViewFailed'
  readonly records: number

  constructor(cause: unknown, records: number) {
    super(firstLine(cause))
    this.records = records
  }
}

/** The process of a conversion died while it worked on the records themselves, not on a view. */
export class ConversionCrashed extends Error {
  override readonly name = 'ConversionCrashed'
}

/** Returns an error's message without DuckDB's excerpts of the statement. */
export function firstLine(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return line
}
