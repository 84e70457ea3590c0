import { Card, Columns } from '../design/layout.tsx'
import { Skeleton } from '../design/skeleton.tsx'

const names = ['throughput', 'latency', 'lag', 'waiting']

/** Holds the place of the charts of an endpoint. */
export function ChartPlaceholders() {
  return (
    <Columns minimum={24}>
      {names.map((name) => (
        <Card key={name}>
          <Skeleton height="chart" />
        </Card>
      ))}
    </Columns>
  )
}
