import type { ReactNode } from 'react'
import style from './empty-state.module.css'

type EmptyStateProps = {
  readonly icon?: ReactNode
  readonly title: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}

/** Says what would be here, and the step that brings it here. */
export function EmptyState({ icon, title, children, action }: EmptyStateProps) {
  return (
    <div className={style.empty}>
      {icon !== undefined && (
        <div className={style.icon} aria-hidden="true">
          {icon}
        </div>
      )}
      <h2 className={style.title}>{title}</h2>
      {children !== undefined && <div className={style.text}>{children}</div>}
      {action !== undefined && action !== false && <div className={style.action}>{action}</div>}
    </div>
  )
}
