import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { ColumnMetrics } from '../../api/view-metrics.ts'
import { Badge } from '../../design/badge.tsx'
import { formatCompact, formatCount, formatShare } from '../../design/format.ts'
import { Table, type TableColumn } from '../../design/table.tsx'
import { useAccount } from '../../shell/session.tsx'
import { beforeOf, type DriftKind, findDrift, type Rates, ratesOf, withRows } from './drift.ts'
import style from './quality.module.css'

/** The values of each column, in the order of the definition. */
export function ColumnTable({ view, columns }: { readonly view: string; readonly columns: readonly ColumnMetrics[] }) {
  const drift = new Set(findDrift(columns).map(({ column, kind }) => `${column} ${kind}`))
  const hasDrifted = (column: ColumnMetrics, kind: DriftKind) => drift.has(`${column.name} ${kind}`)
  const lettersOf = ({ name, last_24h }: ColumnMetrics, code: Letters['code']): Letters | undefined => {
    const count = code === 'cast_failed' ? last_24h.cast_dlq : last_24h.missing
    return count > 0 ? { view, column: name, code } : undefined
  }
  const table: readonly TableColumn<ColumnMetrics>[] = [
    {
      title: 'Column',
      cell: ({ name, type, hidden }) => (
        <>
          <span className={style.name}>{name}</span> {hidden && <Badge>hidden</Badge>}
          <code className={style.under}>{type}</code>
        </>
      ),
    },
    {
      title: 'Values',
      cell: ({ hidden, last_24h, all_time }) => (hidden ? '–' : <Counts now={last_24h.values} ever={all_time.values} />),
      figure: true,
      minor: true,
    },
    {
      title: 'NULL',
      cell: (column) => (column.hidden ? '–' : <Share of={column} kind="nulls" drifted={hasDrifted(column, 'nulls')} />),
      figure: true,
    },
    {
      title: 'Failed casts',
      cell: (column) => (
        <Share
          of={column}
          kind="cast_failures"
          drifted={hasDrifted(column, 'cast_failures')}
          letters={lettersOf(column, 'cast_failed')}
        />
      ),
      figure: true,
    },
    {
      title: 'Missing',
      cell: (column) => (
        <Share
          of={column}
          kind="missing"
          drifted={hasDrifted(column, 'missing')}
          letters={lettersOf(column, 'missing_required')}
        />
      ),
      figure: true,
      minor: true,
    },
    { title: 'Smallest', cell: ({ last_24h, all_time }) => <Extreme now={last_24h.min} ever={all_time.min} />, minor: true },
    { title: 'Largest', cell: ({ last_24h, all_time }) => <Extreme now={last_24h.max} ever={all_time.max} />, minor: true },
  ]
  return <Table label="Columns" columns={table} rows={withRows(columns)} keyOf={({ name }) => name} />
}

/** Where the records are that a column rejected. */
type Letters = { readonly view: string; readonly column: string; readonly code: 'cast_failed' | 'missing_required' }

type ShareProps = {
  readonly of: ColumnMetrics
  readonly kind: DriftKind
  readonly drifted: boolean
  readonly letters?: Letters | undefined
}

/** A share of the last 24 hours above the share before them. */
function Share({ of, kind, drifted, letters }: ShareProps) {
  const [now, before] = [ratesOf(of.last_24h), ratesOf(beforeOf(of))]
  const textOf = (rates: Rates) => ((kind === 'nulls' ? rates.accepted : rates.rows) === 0 ? '–' : formatShare(rates[kind]))
  const text = textOf(now)
  const value = letters === undefined ? text : <LettersLink letters={letters}>{text}</LettersLink>
  return (
    <>
      {drifted ? <Badge tone="warn">{value}</Badge> : value}
      <span className={style.under}>{textOf(before)}</span>
    </>
  )
}

type LettersLinkProps = { readonly letters: Letters; readonly children: ReactNode }

function LettersLink({ letters: { view, column, code }, children }: LettersLinkProps) {
  const account = useAccount()
  return (
    <Link
      to="/in/$account/quality/$view/dead-letters"
      params={{ account, view }}
      search={({ endpoint }: { readonly endpoint?: string }) => ({
        ...(endpoint === undefined ? {} : { endpoint }),
        code,
        column,
      })}
      title={`Dead letters: ${code} in ${column}`}
      className={style.inherit}
    >
      {children}
    </Link>
  )
}

function Counts({ now, ever }: { readonly now: number; readonly ever: number }) {
  return (
    <span title={`${formatCount(now)} in 24 hours, ${formatCount(ever)} of all time`}>
      {formatCompact(now)}
      <span className={style.under}>{formatCompact(ever - now)}</span>
    </span>
  )
}

function Extreme({ now, ever }: { readonly now: string | null; readonly ever: string | null }) {
  return (
    <span title={`${now ?? 'no value'}\nof all time: ${ever ?? 'no value'}`}>
      <code className={style.extreme}>{now ?? '–'}</code>
      <code className={`${style.under} ${style.extreme}`}>{ever === now || ever === null ? '\u00a0' : ever}</code>
    </span>
  )
}
