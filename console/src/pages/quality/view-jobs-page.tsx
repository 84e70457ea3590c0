import { getRouteApi } from '@tanstack/react-router'
import { JobTable } from './job-table.tsx'

const route = getRouteApi('/signed-in/in/$account/quality/$view')

/** Backfills and re-drives of one version. */
export function ViewJobsPage() {
  const { view } = route.useParams()
  return <JobTable filter={{ view_id: view }} />
}
