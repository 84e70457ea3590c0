import type { ColumnMetrics } from '../../api/view-metrics.ts'
import { Callout } from '../../design/callout.tsx'
import { formatShare } from '../../design/format.ts'
import { type Drift, type DriftKind, findDrift, isComparable } from './drift.ts'
import style from './quality.module.css'

/** Says in words what is different from before. */
export function DriftNotes({ columns }: { readonly columns: readonly ColumnMetrics[] }) {
  const drift = findDrift(columns)
  if (drift.length > 0) {
    return (
      <Callout kind="warn" title={drift.length === 1 ? 'A column has drifted' : `${drift.length} changes in the columns`}>
        <ul className={style.list}>
          {drift.map((each) => (
            <li key={`${each.column} ${each.kind}`}>
              <code>{each.column}</code> {textOf(each)}
            </li>
          ))}
        </ul>
      </Callout>
    )
  }
  if (!columns.some(isComparable)) {
    return (
      <Callout title="Drift shows from the second day on">
        <p>
          Then the last 24 hours are compared with what was before: more NULLs, more values that do not fit, fields that are gone.
        </p>
      </Callout>
    )
  }
  return (
    <Callout kind="good" title="No drift">
      <p>In the last 24 hours no column is NULL, missing or unfit noticeably more often than before.</p>
    </Callout>
  )
}

const words: Readonly<Record<DriftKind, string>> = {
  nulls: 'is NULL in',
  cast_failures: 'does not fit its type in',
  missing: 'is required and missing in',
}

function textOf({ kind, before, now }: Drift): string {
  return `${words[kind]} ${formatShare(now)} of the records, instead of ${before === 0 ? 'none' : formatShare(before)} before.`
}
