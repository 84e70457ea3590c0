import { useEffect, useMemo, useRef, useState } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import style from './chart.module.css'
import { useTheme } from './theme.ts'

export type ChartSeries = {
  readonly label: string
  /** One value per time; null where nothing was measured, which leaves a gap. */
  readonly values: readonly (number | null)[]
  readonly tone: 1 | 2 | 3 | 4 | 5
  readonly kind?: 'line' | 'area' | 'bars'
  /** Value for all times, shown while nothing is pointed at. Without it, the last value is shown. */
  readonly whole?: number | null
}

type ChartProps = {
  /** Description of the chart, read out in its place. */
  readonly label: string
  /** Milliseconds since 1970, ascending. */
  readonly times: readonly number[]
  readonly series: readonly ChartSeries[]
  readonly format: (value: number) => string
  /** In pixels. It never changes with the data, so nothing below moves. */
  readonly height?: number
  /** Charts with the same name share the position of the pointer. */
  readonly sync?: string | undefined
  /** The last time is not over: its values still grow. */
  readonly isOpen?: boolean
}

/** A chart over time, with the values under the pointer beside its title. */
export function Chart({ label, times, series, format, height = 180, sync, isOpen = false }: ChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const [pointed, setPointed] = useState<number | null>(null)
  const theme = useTheme()
  const data = useMemo(
    () => [times.map((ms) => ms / 1000), ...series.map(({ values }) => values)] as unknown as UPlot.AlignedData,
    [times, series],
  )
  const shape = JSON.stringify(series.map(({ values: _, whole: __, ...look }) => look))

  // biome-ignore lint/correctness/useExhaustiveDependencies: new data goes into the plot that exists, see the effect below
  useEffect(() => {
    const element = host.current
    if (element === null) return
    const options = plotOptions({ element, series, format, height, sync, onPoint: setPointed })
    const made = new UPlot(options, data, element)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape, height, sync, theme])

  useEffect(() => plot.current?.setData(data), [data])

  const last = times.length - 1
  const shownText = ({ values, whole }: ChartSeries) =>
    valueText(pointed === null && whole !== undefined ? whole : values[pointed ?? last], format)
  const isWhole = pointed === null && series.some(({ whole }) => whole !== undefined)
  const growing = isOpen && !isWhole && (pointed ?? last) === last
  return (
    <div
      className={style.chart}
      aria-label={`${label}: ${series.map((each) => `${each.label} ${shownText(each)}`).join(', ')}`}
      role="img"
    >
      <div className={style.head} aria-hidden="true">
        <span className={style.label}>{label}</span>
        {growing && <span className={style.growing}>so far</span>}
        <span className={style.legend}>
          {series.map((each) => (
            <span key={each.label} className={style.key} data-tone={each.tone}>
              {each.label} <b>{shownText(each)}</b>
            </span>
          ))}
        </span>
      </div>
      <div ref={host} className={style.plot} style={{ height }} />
    </div>
  )
}

function valueText(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

type PlotOptions = Pick<ChartProps, 'series' | 'format' | 'sync'> & {
  readonly element: HTMLElement
  readonly height: number
  readonly onPoint: (index: number | null) => void
}

function plotOptions({ element, series, format, height, sync, onPoint }: PlotOptions): UPlot.Options {
  const computed = getComputedStyle(element)
  const token = (name: string) => resolvedColor(element, computed.getPropertyValue(name))
  const soft = token('--soft')
  const axis = { stroke: soft, font: `11px ${computed.fontFamily}`, ticks: { show: false } }
  return {
    width: element.clientWidth,
    height,
    // At the right: half of the last time.
    padding: [8, 26, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 7 },
      drag: { x: false, y: false },
      ...(sync === undefined ? {} : { sync: { key: sync } }),
    },
    scales: { y: { range: (_plot, min, max) => rangeOf(min, max) } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 90, values: timeLabels },
      {
        ...axis,
        grid: { stroke: token('--line'), width: 1 },
        size: 58,
        space: 40,
        values: (_plot, values) => values.map(format),
      },
    ],
    series: [
      {},
      ...series.map(({ label, tone, kind = 'line' }): UPlot.Series => {
        const stroke = token(`--series-${tone}`)
        const fill = kind === 'line' ? {} : { fill: `color-mix(in srgb, ${stroke} ${kind === 'bars' ? 75 : 16}%, transparent)` }
        const paths = kind === 'bars' && UPlot.paths.bars !== undefined ? { paths: UPlot.paths.bars({ size: [0.8, 24] }) } : {}
        const marks = kind === 'bars' ? { show: false } : points
        return { label, stroke, width: kind === 'bars' ? 0 : 1.75, points: marks, spanGaps: false, ...fill, ...paths }
      }),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  }
}

/** Zero is always in sight, so that heights compare. Some air keeps a line off the edge. */
function rangeOf(min: number | null, max: number | null): [number, number] {
  const [low, high] = [Math.min(0, min ?? 0), Math.max(0, max ?? 0)]
  return low === high ? [0, 1] : [low * 1.08, high * 1.08]
}

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const dayOfYear = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const secondOfDay = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const [dayS, minuteS] = [86_400, 60]

/** In the viewer's zone: the time, and the day where one begins. */
function timeLabels(_plot: UPlot, splits: readonly number[], _axis: number, _space: number, stepS: number): string[] {
  return splits.map((second) => {
    const date = new Date(second * 1000)
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0
    if (stepS < minuteS) return secondOfDay.format(date)
    return (stepS >= dayS || isMidnight ? dayOfYear : timeOfDay).format(date)
  })
}

/** A value between two gaps is a point: a line needs two of them. */
const points: UPlot.Series.Points = {
  show: false,
  size: 4,
  filter: ({ data }, at) => {
    const values = data[at] ?? []
    const isMissing = (index: number) => values[index] === null || values[index] === undefined
    return [...values.keys()].filter((index) => !isMissing(index) && isMissing(index - 1) && isMissing(index + 1))
  },
}

/** A canvas does not know `light-dark()`: the browser resolves it on an element. */
function resolvedColor(element: HTMLElement, value: string): string {
  const probe = document.createElement('span')
  probe.style.color = value
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
