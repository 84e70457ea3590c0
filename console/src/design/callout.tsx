import { CircleAlert, CircleCheck, Info, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import style from './callout.module.css'

export type CalloutKind = 'note' | 'good' | 'warn' | 'bad'

const icons = { note: Info, good: CircleCheck, warn: TriangleAlert, bad: CircleAlert } as const

type CalloutProps = {
  readonly kind?: CalloutKind
  readonly title?: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}

/** A message in the flow of a page. What went wrong is read out at once. */
export function Callout({ kind = 'note', title, children, action }: CalloutProps) {
  const Icon = icons[kind]
  return (
    <div className={style.callout} data-kind={kind} role={kind === 'bad' ? 'alert' : 'note'}>
      <Icon aria-hidden="true" className={style.icon} />
      <div className={style.text}>
        {title !== undefined && <strong className={style.title}>{title}</strong>}
        {children}
      </div>
      {action}
    </div>
  )
}
