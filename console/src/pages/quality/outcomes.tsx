import type { WindowCounts } from '../../api/view-metrics.ts'
import { SplitBar } from '../../design/split-bar.tsx'

type OutcomeBarProps = { readonly label: string; readonly counts: WindowCounts }

/** Divides records by their outcome. */
export function OutcomeBar({ label, counts: { accepted, dropped, dlq, redriven, failed } }: OutcomeBarProps) {
  return (
    <SplitBar
      label={label}
      parts={[
        { label: 'accepted', value: accepted, tone: 'good' },
        { label: 'dropped', value: dropped, tone: 'none' },
        { label: 'dead letters', value: dlq - redriven, tone: 'warn' },
        { label: 're-driven dead letters', value: redriven, tone: 'calm' },
        { label: 'failed', value: failed, tone: 'bad' },
      ]}
    />
  )
}
