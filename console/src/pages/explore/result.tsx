import { getRouteApi, Link } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import type { QueryResult } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format.ts'
import { Menu, MenuItem } from '../../design/menu.tsx'
import { TabBar, tabClass } from '../../design/tabs.tsx'
import { Time } from '../../design/time.tsx'
import { MayLackCommits } from '../../shell/may-lack-commits.tsx'
import { drawingOf } from './chart-data.ts'
import { save, toCsv, toJsonLines } from './download.ts'
import style from './explore.module.css'
import type { ExploreSearch } from './explore-search.ts'
import { ResultChart } from './result-chart.tsx'
import { ResultTable } from './result-table.tsx'

const route = getRouteApi('/signed-in/in/$account/explore')

/** The rows of a statement, as table or chart, and what they were read from. */
export function Result({ result }: { readonly result: QueryResult }) {
  const { show } = route.useSearch()
  const drawing = drawingOf(result)
  if (result.rows.length === 0) return <Nothing result={result} />
  const tab = (label: string, to: 'chart' | undefined) => (
    <Link
      from="/in/$account/explore"
      to="."
      search={({ show: _, ...search }: ExploreSearch) => ({ ...search, ...(to === undefined ? {} : { show: to }) })}
      className={tabClass}
      activeOptions={{ exact: true }}
      replace
    >
      {label}
    </Link>
  )
  const isChart = show === 'chart' && drawing !== undefined
  return (
    <section className={style.result} aria-label="Result">
      <LeftOut result={result} />
      <div className={style.resultHead}>
        {drawing !== undefined && (
          <TabBar label="Result as">
            {tab('Table', undefined)}
            {tab('Chart', 'chart')}
          </TabBar>
        )}
        <Summary result={result} />
        <DownloadMenu result={result} />
      </div>
      {isChart ? <ResultChart drawing={drawing} /> : <ResultTable result={result} />}
    </section>
  )
}

function Summary({ result: { row_count, tables, elapsed_ms } }: { readonly result: QueryResult }) {
  const files = tables.reduce((sum, table) => sum + table.files, 0)
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0)
  return (
    <p className={style.summary} role="status">
      {plural(row_count, 'row')} from {plural(files, 'file')} ({formatBytes(bytes)}) in {formatDuration(elapsed_ms)}
    </p>
  )
}

function DownloadMenu({ result }: { readonly result: QueryResult }) {
  return (
    <Menu
      trigger={
        <Button size="small" icon={<Download aria-hidden="true" />}>
          Download
        </Button>
      }
    >
      <MenuItem onSelect={() => save('result.csv', 'text/csv', toCsv(result))}>CSV</MenuItem>
      <MenuItem onSelect={() => save('result.ndjson', 'application/x-ndjson', toJsonLines(result))}>JSON lines</MenuItem>
    </Menu>
  )
}

/** A count over a part of the data must not be taken for the whole. */
function LeftOut({ result: { tables, truncated, row_count } }: { readonly result: QueryResult }) {
  const partial = tables.filter(({ complete }) => !complete)
  if (partial.length === 0 && truncated === null) return null
  return (
    <Callout kind="warn" title="This is not everything">
      {truncated !== null && <p>These are the first {plural(row_count, 'row')}. Aggregate in SQL, or add a LIMIT.</p>}
      {partial.map(({ name, files, missing, oldest, may_lack_commits_since }) =>
        may_lack_commits_since !== null ? (
          <p key={name}>
            <code>{name}</code>: <MayLackCommits since={may_lack_commits_since} />
          </p>
        ) : (
          <p key={name}>
            <code>{name}</code>: only the newest {plural(files, 'file')} {files === 1 ? 'was' : 'were'} read
            {oldest !== null && (
              <>
                , back to <Time at={oldest} exact />
              </>
            )}
            {missing > 0 && `; ${plural(missing, 'file')} no longer in the bucket`}. Choose a shorter time, or use a warehouse.
          </p>
        ),
      )}
    </Callout>
  )
}

function Nothing({ result }: { readonly result: QueryResult }) {
  const withoutFiles = result.tables.filter(({ files }) => files === 0).map(({ name }) => name)
  return (
    <>
      <LeftOut result={result} />
      <EmptyState title="No rows">
        {withoutFiles.length > 0 ? (
          <p>Nothing was delivered for {withoutFiles.join(', ')} in this time. Choose a longer one, or look at the endpoint.</p>
        ) : (
          <p>The files were read, and no row is in the result. Look at the conditions of the statement.</p>
        )}
      </EmptyState>
    </>
  )
}

function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}
