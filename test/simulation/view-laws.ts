/** Laws of views: their files have the rows that they decide on, and each outcome and counter says how many. */
import { printArtifactKind } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { countsOf, decidedAs, hasWindow, type ViewCounts } from './view-rows.ts'

/** The views of a commit, and the files that have its rows now, by kind. */
export type WithViews = {
  readonly id: string
  readonly views: readonly ViewOutcome[]
  readonly records: readonly string[]
  /** The version whose dead letters a re-drive read. */
  readonly redriveFrom?: number | undefined
  readonly rowsOf: (kind: string) => readonly string[]
}

/** Compares outcomes and files of a commit with its records. Rows of a view with a window depend on other commits, too: see test/simulation/window-laws.ts. */
export function wrongOutcomes({ id, views, records, redriveFrom, rowsOf }: WithViews): readonly string[] {
  return views.flatMap((outcome) => {
    const { view_name: name, view_version: version } = outcome
    const view = { name, version }
    const of = (type: 'view' | 'dlq') =>
      rowsOf(printArtifactKind({ type, ...view, ...(redriveFrom !== undefined && { redriveFrom }) }))
    const [counted, duplicates] = [countsOf(view, records), outcome.duplicates ?? 0]
    const { accepted, dropped } = counted
    const written = { ...counted, accepted: accepted - duplicates, dropped: dropped + duplicates }
    const rows = of('view')
    return [
      ...(isSame(outcome, written) ? [] : [`${id}: ${name} counts ${print(outcome)}`]),
      ...(hasWindow(view) || areSame(rows, decidedAs('accepted', view, records)) ? [] : [`${id}: other rows of ${name}`]),
      ...(areSame(of('dlq'), decidedAs('dlq', view, records)) ? [] : [`${id}: other dead letters of ${name}`]),
    ]
  })
}

/** An addition of a job to a commit. `from_version` is set if it read the dead letters of that version. */
type Added = Pick<WithViews, 'id' | 'views' | 'rowsOf'> & { readonly from_version: number | null }

/** A segment has one output of each version. `records` are those of the commit, which has `outcomes` of its own. */
export function wrongAddition(
  { id, views, rowsOf, from_version }: Added,
  outcomes: readonly ViewOutcome[],
  records: readonly string[],
): readonly string[] {
  return views.flatMap((view) => {
    const { view_id, view_name: name } = view
    const twice = outcomes.some((outcome) => outcome.view_id === view_id) ? [`${id}: the commit has that view, too`] : []
    if (from_version === null) return [...twice, ...wrongOutcomes({ id, views, records, rowsOf })]
    const source = decidedAs('dlq', { name, version: from_version }, records)
    return [...twice, ...wrongOutcomes({ id, views, records: source, redriveFrom: from_version, rowsOf })]
  })
}

/** Counts of a view at an endpoint: the counters of control, or an outcome. */
export type Counted = ViewCounts & { readonly view_id: string; readonly endpoint_id: string }

/** Compares counters with the sums of the outcomes. */
export function wrongCounters(counters: readonly Counted[], outcomes: readonly Counted[]): readonly string[] {
  const sums = new Map<string, ViewCounts>()
  for (const outcome of outcomes) {
    const { processed, accepted, dropped, dlq } = sums.get(nameOf(outcome)) ?? none
    sums.set(nameOf(outcome), {
      processed: processed + outcome.processed,
      accepted: accepted + outcome.accepted,
      dropped: dropped + outcome.dropped,
      dlq: dlq + outcome.dlq,
    })
  }
  const known = new Map(counters.map((each) => [nameOf(each), each]))
  return [...new Set([...known.keys(), ...sums.keys()])].flatMap((name) => {
    const [counter = none, sum = none] = [known.get(name), sums.get(name)]
    return isSame(counter, sum) ? [] : [`the counters of ${name} are ${print(counter)}, and the commits have ${print(sum)}`]
  })
}

const none: ViewCounts = { processed: 0, accepted: 0, dropped: 0, dlq: 0 }

function nameOf({ view_id, endpoint_id }: Counted): string {
  return `${view_id} ${endpoint_id}`
}

function isSame(one: ViewCounts, other: ViewCounts): boolean {
  return print(one) === print(other)
}

function print({ processed, accepted, dropped, dlq }: ViewCounts): string {
  return `${processed} records: ${accepted} accepted, ${dropped} dropped, ${dlq} dead letters`
}

function areSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((row, at) => row === other[at])
}
