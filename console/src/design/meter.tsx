import { formatShare } from './format.ts'
import style from './meter.module.css'

type MeterProps = {
  /** Name of the measured amount, for screen readers. */
  readonly label: string
  readonly value: number
  readonly max: number
  /** Value in figures, shown beside the bar. */
  readonly text: string
}

const warnShare = 0.8
const badShare = 0.95

/** How much of something bounded is used. The bar turns amber, then red, before it is full. */
export function Meter({ label, value, max, text }: MeterProps) {
  const share = max === 0 ? 0 : Math.min(1, value / max)
  const tone = share >= badShare ? 'bad' : share >= warnShare ? 'warn' : 'calm'
  return (
    <div className={style.meter} title={`${formatShare(share)} used`}>
      {/* biome-ignore lint/a11y/useSemanticElements: the bar of a <meter> cannot be styled alike in all browsers */}
      <div
        className={style.track}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={text}
      >
        {value > 0 && <div className={style.fill} data-tone={tone} style={{ inlineSize: `${share * 100}%` }} />}
      </div>
      <span className={style.text}>{text}</span>
    </div>
  )
}
