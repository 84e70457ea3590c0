import type { Tone } from './badge.tsx'
import { formatCount, formatShare } from './format.ts'
import style from './split-bar.module.css'

export type Part = { readonly label: string; readonly value: number; readonly tone: Tone }

type SplitBarProps = {
  /** Name of the divided amount, for screen readers. */
  readonly label: string
  readonly parts: readonly Part[]
  /** The whole, if the parts are not all of it: what is left stays empty. */
  readonly total?: number
  /** Whether it fills up while one watches. */
  readonly progress?: boolean
}

/** How a whole is divided. A part that exists is always seen, however small it is. */
export function SplitBar({ label, parts, total = sum(parts), progress = false }: SplitBarProps) {
  const shown = parts.filter(({ value }) => value > 0)
  const text = shown.map((part) => `${part.label} ${formatCount(part.value)} (${formatShare(part.value / total)})`).join(', ')
  const content = shown.map((part) => (
    <span
      key={part.label}
      className={style.part}
      data-tone={part.tone}
      style={{ width: `${(part.value / total) * 100}%`, minWidth: 3 }}
    />
  ))
  if (progress) {
    const done = total === 0 ? 100 : Math.floor((sum(parts) / total) * 100)
    const values = { 'aria-label': label, 'aria-valuenow': done, 'aria-valuetext': text === '' ? 'nothing yet' : text }
    return (
      <div role="progressbar" {...values} title={text} className={style.bar}>
        {content}
      </div>
    )
  }
  return (
    <div role="img" aria-label={`${label}: ${text}`} title={text} className={style.bar}>
      {content}
    </div>
  )
}

function sum(parts: readonly Part[]): number {
  return parts.reduce((all, { value }) => all + value, 0)
}
