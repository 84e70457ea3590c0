import type { ReactNode } from 'react'
import style from './badge.module.css'

export type Tone = 'good' | 'warn' | 'bad' | 'note' | 'calm' | 'none'

/** A state in one word. The dot repeats what the word says, for eyes that scan a list. */
export function Badge({
  tone = 'none',
  dot = false,
  children,
}: {
  readonly tone?: Tone
  readonly dot?: boolean
  readonly children: ReactNode
}) {
  return (
    <span className={style.badge} data-tone={tone}>
      {dot && <span className={style.dot} aria-hidden="true" />}
      {children}
    </span>
  )
}
