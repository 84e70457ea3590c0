import { useMemo } from 'react'
import type { Commit } from '../../api/endpoints.ts'
import { Chart } from '../../design/chart.tsx'
import { formatCompact, formatDuration } from '../../design/format.ts'
import { Card, Columns } from '../../design/layout.tsx'

/** The latest segments over time: their records, and how long each took to the bucket. */
export function CommitCharts({ commits }: { readonly commits: readonly Commit[] }) {
  const { times, records, delays } = useMemo(() => {
    const ordered = commits.toReversed()
    return {
      times: ordered.map(({ uploaded_at }) => Date.parse(uploaded_at)),
      records: [{ label: 'records', values: ordered.map((commit) => commit.records), tone: 1, kind: 'area' }] as const,
      delays: [{ label: 'seal to bucket', values: ordered.map(delayOf), tone: 2 }] as const,
    }
  }, [commits])
  return (
    <Columns minimum={24}>
      <Card>
        <Chart label="Records per segment" times={times} series={records} format={formatCompact} sync="commits" />
      </Card>
      <Card>
        <Chart label="Time to the bucket" times={times} series={delays} format={formatDuration} sync="commits" />
      </Card>
    </Columns>
  )
}

/** Milliseconds from the seal of the segment to its commit. */
export function delayOf({ sealed_at, uploaded_at }: Pick<Commit, 'sealed_at' | 'uploaded_at'>): number {
  return Math.max(0, Date.parse(uploaded_at) - Date.parse(sealed_at))
}
