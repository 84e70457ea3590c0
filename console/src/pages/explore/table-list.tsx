import { Link } from '@tanstack/react-router'
import { Play, Table2 } from 'lucide-react'
import type { QueryTable } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { useAccount } from '../../shell/session.tsx'
import style from './explore.module.css'
import { readyQueries } from './ready-queries.ts'

type TableListProps = { readonly tables: readonly QueryTable[]; readonly onRun: (sql: string) => void }

/** The tables of the account, each with its columns and ready queries. */
export function TableList({ tables, onRun }: TableListProps) {
  const account = useAccount()
  if (tables.length === 0) {
    return (
      <EmptyState
        icon={<Table2 />}
        title="No table yet"
        action={
          <Link to="/in/$account" params={{ account }}>
            See your endpoints
          </Link>
        }
      >
        <p>A published view is a table. So are the records of an endpoint that writes raw Parquet.</p>
      </EmptyState>
    )
  }
  return (
    <>
      <Group title="Views" tables={tables.filter(({ kind }) => kind === 'view')} onRun={onRun} opens />
      <Group
        title="Raw records"
        tables={tables.filter(({ kind }) => kind === 'raw')}
        onRun={onRun}
        opens={tables[0]?.kind === 'raw'}
      />
    </>
  )
}

function Group({ title, tables, onRun, opens }: TableListProps & { readonly title: string; readonly opens: boolean }) {
  if (tables.length === 0) return null
  return (
    <section className={style.group}>
      <h2 className={style.groupTitle}>{title}</h2>
      {tables.map((table, index) => (
        <details key={table.name} className={style.tableEntry} open={opens && index === 0}>
          <summary className={style.tableName}>{table.name}</summary>
          <ul className={style.queries}>
            {readyQueries(table).map((query) => (
              <li key={query.title}>
                <Button look="quiet" size="small" icon={<Play aria-hidden="true" />} onClick={() => onRun(query.sql)}>
                  {query.title}
                </Button>
              </li>
            ))}
          </ul>
          <dl className={style.columns}>
            {table.columns.map(({ name, type }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{type}</dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
    </section>
  )
}
