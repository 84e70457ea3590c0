import type { ReactNode } from 'react'
import style from './layout.module.css'

type PageProps = {
  readonly title: ReactNode
  /** One sentence that says what the page is for. */
  readonly about?: ReactNode
  /** Where one came from. */
  readonly trail?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** A screen: its title, its main actions, its content. */
export function Page({ title, about, trail, actions, children }: PageProps) {
  return (
    <div className={style.page}>
      <header className={style.header}>
        <div className={style.heading}>
          {trail !== undefined && <div className={style.trail}>{trail}</div>}
          <h1 className={style.title}>{title}</h1>
          {about !== undefined && <p className={style.about}>{about}</p>}
        </div>
        {actions !== undefined && <div className={style.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

type SectionProps = {
  readonly title: ReactNode
  readonly about?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function Section({ title, about, actions, children }: SectionProps) {
  return (
    <section className={style.section}>
      <header className={style.sectionHeader}>
        <div>
          <h2 className={style.sectionTitle}>{title}</h2>
          {about !== undefined && <p className={style.about}>{about}</p>}
        </div>
        {actions}
      </header>
      {children}
    </section>
  )
}

export function Card({ children, flush = false }: { readonly children: ReactNode; readonly flush?: boolean }) {
  return (
    <div className={style.card} data-flush={flush || undefined}>
      {children}
    </div>
  )
}

/** A column that is as wide as a form is read. Its parts stand below each other. */
export function Sheet({ children, narrow = false }: { readonly children: ReactNode; readonly narrow?: boolean }) {
  return (
    <div className={style.sheet} data-narrow={narrow || undefined}>
      {children}
    </div>
  )
}

/** Things beside each other, which wrap where there is no room. */
export function Inline({ children }: { readonly children: ReactNode }) {
  return <span className={style.inline}>{children}</span>
}

/** A few sentences that do not follow from each other, such as what an action does. */
export function Bullets({ children }: { readonly children: ReactNode }) {
  return <ul className={style.bullets}>{children}</ul>
}

/** Equal columns as long as each has `minimum` rem; then fewer. */
export function Columns({ children, minimum = 16 }: { readonly children: ReactNode; readonly minimum?: 12 | 16 | 24 }) {
  return (
    <div className={style.columns} data-minimum={minimum}>
      {children}
    </div>
  )
}

type StatProps = {
  readonly label: string
  /** Undefined while it is loading: its place is held. */
  readonly value: ReactNode
  readonly note?: ReactNode
  readonly exact?: string | undefined
}

/** One figure that people look for first. */
export function Stat({ label, value, note, exact }: StatProps) {
  return (
    <div className={style.stat} aria-busy={value === undefined || undefined}>
      <div className={style.statLabel}>{label}</div>
      <div className={style.statValue} title={exact}>
        {value ?? '\u00a0'}
      </div>
      {(note !== undefined || value === undefined) && <div className={style.statNote}>{note ?? '\u00a0'}</div>}
    </div>
  )
}

export function Facts({ facts }: { readonly facts: readonly (readonly [label: string, value: ReactNode])[] }) {
  return (
    <dl className={style.facts}>
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
