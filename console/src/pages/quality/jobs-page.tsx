import { getRouteApi, Link } from '@tanstack/react-router'
import { EmptyState } from '../../design/empty-state.tsx'
import { Page } from '../../design/layout.tsx'
import { TabBar, tabClass } from '../../design/tabs.tsx'
import { useAccount } from '../../shell/session.tsx'
import { JobTable } from './job-table.tsx'

const route = getRouteApi('/signed-in/in/$account/jobs')

const tabs = [
  ['All', undefined],
  ['Running', 'running'],
  ['Paused', 'paused'],
  ['Failed', 'failed'],
  ['Succeeded', 'succeeded'],
  ['Canceled', 'canceled'],
] as const

/** All backfills, re-drives and compactions of the account. */
export function JobsPage() {
  const account = useAccount()
  const { status } = route.useSearch()
  const empty = status === undefined ? {} : { empty: <EmptyState title={`No job is ${status}`} /> }
  return (
    <Page
      title="Jobs"
      about="Backfills and re-drives run versions of views over records that were delivered before. Compactions merge small files."
    >
      <TabBar label="Status">
        {tabs.map(([label, value]) => (
          <Link
            key={label}
            to="/in/$account/jobs"
            params={{ account }}
            search={value === undefined ? {} : { status: value }}
            activeOptions={{ exact: true, includeSearch: true }}
            replace
            className={tabClass}
          >
            {label}
          </Link>
        ))}
      </TabBar>
      <JobTable filter={status === undefined ? {} : { status }} {...empty} />
    </Page>
  )
}
