import type { ReactNode } from 'react'
import style from './tabs.module.css'

/** Tabs that are links, so that each has an address: the shell passes the links of its router. */
export function TabBar({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <nav className={style.bar} aria-label={label}>
      {children}
    </nav>
  )
}

export const tabClass = style.tab ?? ''
