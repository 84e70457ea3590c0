import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { Play, Telescope } from 'lucide-react'
import { useMemo, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { type QueryResult, type QueryTable, type RunQuery, resultQuery, tablesQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { SelectField } from '../../design/field.tsx'
import { Card, Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import type { EditorProblem } from '../../editor/editor-problem.ts'
import { Failure, sentence } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import style from './explore.module.css'
import { type ExploreSearch, type Range, rangeChoices, sinceOf } from './explore-search.ts'
import { Result } from './result.tsx'
import { SqlEditor } from './sql-editor.tsx'
import { TableList } from './table-list.tsx'

const route = getRouteApi('/signed-in/in/$account/explore')
const noTables: readonly QueryTable[] = []

/** Query that runs now. `run` tells two runs of the same statement apart. */
type Running = { readonly query: RunQuery; readonly run: number }

function runningOf({ sql, range = 'day' }: ExploreSearch): Running | undefined {
  if (sql === undefined || sql.trim() === '') return undefined
  const since = sinceOf(range, Date.now())
  return { query: { sql, max_rows: 1_000, ...(since === undefined ? {} : { since }) }, run: Date.now() }
}

/** A box for SQL over what was delivered, and what it returns. */
export function ExplorePage() {
  const account = useAccount()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const tables = useQuery(tablesQuery(account))
  const [text, setText] = useState(search.sql ?? '')
  const [running, setRunning] = useState(() => runningOf(search))
  const { range = 'day' } = search
  const answer = useQuery({
    ...resultQuery(account, running?.query ?? { sql: '', max_rows: 1 }, running?.run ?? 0),
    enabled: running !== undefined,
  })
  // A failure is about the statement that ran. Once somebody corrects it, it is history.
  const failure = text === running?.query.sql ? answer.error : null
  const problems = useMemo(() => problemsOf(failure), [failure])

  const run = (sql: string, next: Range = range) => {
    setText(sql)
    setRunning(runningOf({ sql, range: next }))
    void navigate({ search: (before: ExploreSearch) => ({ ...before, sql, range: next }), replace: sql === search.sql })
  }
  return (
    <Page
      title="Explore"
      about="Look at what was delivered. It reads the newest files in your bucket: for dashboards, or joins over months, load them into a warehouse."
    >
      <div className={style.board}>
        <div className={style.main}>
          <Card flush>
            <SqlEditor
              value={text}
              onChange={setText}
              onRun={() => run(text)}
              tables={tables.data ?? noTables}
              problems={problems}
            />
            <div className={style.toolbar}>
              <SelectField
                label="Delivered"
                value={range}
                choices={rangeChoices}
                onChange={(next) =>
                  void navigate({ search: (before: ExploreSearch) => ({ ...before, range: next }), replace: true })
                }
              />
              <kbd className={style.hint}>Ctrl Enter</kbd>
              <Button look="primary" icon={<Play aria-hidden="true" />} disabled={text.trim() === ''} onClick={() => run(text)}>
                Run query
              </Button>
            </div>
          </Card>
          {running === undefined ? (
            <Invitation />
          ) : (
            <Answer isRunning={answer.isFetching} data={answer.data} error={failure} onRetry={() => run(text)} />
          )}
        </div>
        <aside className={style.side} aria-label="Tables">
          {tables.isError && <Failure error={tables.error} onRetry={() => void tables.refetch()} />}
          {tables.isPending && <Skeleton rows={4} />}
          {tables.data !== undefined && <TableList tables={tables.data} onRun={(sql) => run(sql)} />}
        </aside>
      </div>
    </Page>
  )
}

type AnswerProps = {
  readonly isRunning: boolean
  readonly data: QueryResult | undefined
  readonly error: Error | null
  readonly onRetry: () => void
}

function Answer({ isRunning, data, error, onRetry }: AnswerProps) {
  // The same statement would fail again, so there is no button to try it.
  if (error instanceof ApiError && error.fieldError('sql') !== undefined)
    return (
      <Callout kind="bad" title="The statement does not run">
        <p>{sentence(error.message)}</p>
      </Callout>
    )
  if (error !== null) return <Failure error={error} onRetry={onRetry} />
  if (data !== undefined) return <Result result={data} />
  return isRunning && <Skeleton height="chart" />
}

function problemsOf(error: Error | null): readonly EditorProblem[] {
  const errors = error instanceof ApiError ? (error.problem.errors ?? []) : []
  return errors.flatMap(({ path, message, line, column = 1 }) =>
    line === undefined || path !== 'sql' ? [] : [{ line, column, message, severity: 'error' as const }],
  )
}

function Invitation() {
  return (
    <EmptyState icon={<Telescope />} title="Nothing was asked yet">
      <p>Choose a ready query of one of your tables, or write your own.</p>
    </EmptyState>
  )
}
