import { CircleAlert, CircleCheck, CircleMinus, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { Spinner } from './spinner.tsx'
import style from './steps.module.css'

/** Ordered list of steps, done or to be done. */
export function Steps({ children }: { readonly children: ReactNode }) {
  return <ol className={style.steps}>{children}</ol>
}

type StepProps = {
  /** Its number, for what has to be done; its outcome, for what was done; `busy` until then. */
  readonly mark: number | 'good' | 'warn' | 'bad' | 'none' | 'busy'
  readonly title: ReactNode
  /** Beside the title: the outcome in a word. */
  readonly aside?: ReactNode
  readonly children?: ReactNode
}

const icons = { good: CircleCheck, warn: TriangleAlert, bad: CircleAlert, none: CircleMinus, busy: Spinner } as const

export function Step({ mark, title, aside, children }: StepProps) {
  const Icon = typeof mark === 'number' ? undefined : icons[mark]
  return (
    <li className={style.step}>
      <div className={style.mark} data-mark={typeof mark === 'number' ? 'number' : mark} aria-hidden="true">
        {Icon === undefined ? mark : <Icon />}
      </div>
      <div className={style.body}>
        <div className={style.head}>
          <h3 className={style.title}>{title}</h3>
          {aside}
        </div>
        {children}
      </div>
    </li>
  )
}
