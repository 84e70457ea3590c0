import { Chart } from '../../design/chart.tsx'
import { formatCompact } from '../../design/format.ts'
import { Card } from '../../design/layout.tsx'
import type { Drawing } from './chart-data.ts'
import style from './explore.module.css'

const chartHeight = 300

/** Figures over time as lines, others as bars beside their names. */
export function ResultChart({ drawing }: { readonly drawing: Drawing }) {
  if (drawing.kind === 'time') {
    return (
      <Card>
        <Chart label="Result" times={drawing.times} series={drawing.series} format={formatCompact} height={chartHeight} />
      </Card>
    )
  }
  const { bars, label } = drawing
  const highest = Math.max(...bars.map(({ value }) => Math.abs(value)))
  return (
    <Card>
      <dl className={style.bars} aria-label={label}>
        {bars.map(({ name, value }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a result never changes, and names repeat
          <div key={index} className={style.bar}>
            <dt title={name}>{name}</dt>
            <dd>
              <span
                className={style.fill}
                style={{ width: `${highest === 0 ? 0 : (Math.abs(value) / highest) * 100}%` }}
                aria-hidden="true"
              />
              <span className={style.value}>{formatCompact(value)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}
