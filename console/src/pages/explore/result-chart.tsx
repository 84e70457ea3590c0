import { Chart } from '../../design/chart.tsx'
import { formatCompact, formatCount } from '../../design/format.ts'
import { Card } from '../../design/layout.tsx'
import { type Drawing, type Span, spansOf } from './chart-data.ts'
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
  return <Bars drawing={drawing} />
}

function Bars({ drawing: { bars, label, leftOut } }: { readonly drawing: Extract<Drawing, { readonly kind: 'bars' }> }) {
  const spans = spansOf(bars.map(({ value }) => value))
  return (
    <Card>
      <dl className={style.bars} aria-label={label}>
        {bars.map(({ name, value }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a result never changes, and names repeat
          <div key={index} className={style.bar}>
            <dt title={name}>{name}</dt>
            <dd className={style.track} aria-hidden="true">
              {value !== 0 && <span className={style.fill} style={placeOf(spans[index])} />}
            </dd>
            <dd className={style.value} title={String(value)}>
              {formatCompact(value)}
            </dd>
          </div>
        ))}
      </dl>
      {leftOut > 0 && (
        <p className={style.leftOut}>
          {formatCount(leftOut)} more {leftOut === 1 ? 'row is' : 'rows are'} in the table only.
        </p>
      )}
    </Card>
  )
}

function placeOf(span: Span | undefined) {
  const { start, length } = span ?? { start: 0, length: 0 }
  return { insetInlineStart: `${start * 100}%`, inlineSize: `${length * 100}%` }
}
