import type { ReactNode } from 'react'
import style from './code-block.module.css'
import { CopyButton } from './copy-button.tsx'

/** Text to paste elsewhere. The head names it and copies it. */
export function CodeBlock({
  code,
  label,
  wrap = false,
  action,
}: {
  readonly code: string
  readonly label: string
  readonly wrap?: boolean
  /** Other actions on the code. */
  readonly action?: ReactNode
}) {
  return (
    <figure className={style.block}>
      <figcaption className={style.head}>
        {label}
        <span className={style.actions}>
          {action}
          <CopyButton text={code} />
        </span>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
      <pre className={style.code} data-wrap={wrap || undefined} tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  )
}
