import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet, useNavigate } from '@tanstack/react-router'
import { isMissing } from '../../api/intervals.ts'
import { type EndpointViewMetrics, viewMetricsQuery } from '../../api/view-metrics.ts'
import { viewQuery } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { SelectField } from '../../design/field.tsx'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { TabBar } from '../../design/tabs.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { LoadFailure } from '../../shell/load-failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { TabLink } from '../../shell/tab-link.tsx'
import style from './quality.module.css'
import { StartJobs } from './start-job.tsx'

const route = getRouteApi('/signed-in/in/$account/quality/$view')

/** Head of all screens of one version: its name, its state, its tabs. */
export function ViewQualityFrame() {
  const account = useAccount()
  const { view: id } = route.useParams()
  const view = useQuery(viewQuery(account, id))
  const mayStart = useMay('member')
  const params = { account, view: id }
  const trail = (
    <Link to="/in/$account/quality" params={{ account }}>
      Data quality
    </Link>
  )
  if (view.isError && (view.data === undefined || isMissing(view.error))) {
    return (
      <Page title="View" trail={trail}>
        <LoadFailure
          query={view}
          noun="view"
          back={
            <ButtonLink to="/in/$account/quality" params={{ account }}>
              Go to data quality
            </ButtonLink>
          }
        />
      </Page>
    )
  }
  return (
    <Page
      trail={trail}
      title={
        <>
          {view.data?.name ?? 'View'}
          {view.data !== undefined && (
            <>
              <Badge>version {view.data.version}</Badge>
              <StatusBadge status={view.data.status} />
            </>
          )}
        </>
      }
      actions={mayStart && view.data !== undefined && <StartJobs view={view.data} />}
    >
      <div className={style.between}>
        <TabBar label="Data quality">
          <TabLink to="/in/$account/quality/$view" params={params} search={keepEndpoint} activeOptions={onlyPath}>
            Columns
          </TabLink>
          <TabLink to="/in/$account/quality/$view/dead-letters" params={params} search={keepEndpoint} activeOptions={byPath}>
            Dead letters
          </TabLink>
          <TabLink to="/in/$account/quality/$view/jobs" params={params} search={keepEndpoint} activeOptions={byPath}>
            Jobs
          </TabLink>
        </TabBar>
        {view.data !== undefined && <Versions id={id} versions={view.data.versions} />}
      </div>
      {view.data === undefined ? <Skeleton rows={4} height="figure" /> : <Outlet />}
    </Page>
  )
}

const byPath = { includeSearch: false } as const
const onlyPath = { ...byPath, exact: true } as const

/** Tabs are about the same endpoint. */
function keepEndpoint({ endpoint }: { readonly endpoint?: string | undefined }): { readonly endpoint?: string } {
  return endpoint === undefined ? {} : { endpoint }
}

type Version = { readonly id: string; readonly version: number; readonly status: string }

/** The same screen of another version. */
function Versions({ id, versions }: { readonly id: string; readonly versions: readonly Version[] }) {
  const navigate = useNavigate()
  const others = versions.filter(({ status }) => status !== 'draft')
  if (others.length < 2) return null
  return (
    <div className={style.choice}>
      <SelectField
        label="Version"
        value={id}
        choices={others.map((each) => ({ value: each.id, label: `${each.version} (${each.status})` }))}
        onChange={(view) => void navigate({ to: '.', params: (params: object) => ({ ...params, view }), search: true })}
      />
    </div>
  )
}

const allEndpoints = 'all'

/** Chooses the endpoint that a screen is about. */
export function EndpointChoice({ endpoints }: { readonly endpoints: readonly EndpointViewMetrics[] }) {
  const { endpoint = allEndpoints } = route.useSearch()
  const navigate = useNavigate()
  if (endpoints.length < 2) return null
  const choices = [
    { value: allEndpoints, label: 'All endpoints' },
    ...endpoints.map(({ endpoint_id, endpoint_name }) => ({ value: endpoint_id, label: endpoint_name })),
  ]
  const choose = (chosen: string) =>
    void navigate({
      to: '.',
      search: ({ endpoint: _, ...search }: Record<string, unknown>) =>
        chosen === allEndpoints ? search : { ...search, endpoint: chosen },
      replace: true,
    })
  return (
    <div className={style.choice}>
      <SelectField label="Endpoint" value={endpoint} choices={choices} onChange={choose} />
    </div>
  )
}

/** The metrics that a screen is about: of the endpoint in the address, or of all. */
export function useViewMetrics() {
  const { view } = route.useParams()
  const { endpoint } = route.useSearch()
  const metrics = useQuery(viewMetricsQuery(useAccount(), view))
  const of = metrics.data?.endpoints.find(({ endpoint_id }) => endpoint_id === endpoint) ?? metrics.data?.aggregated
  return { metrics, of, view, endpoint }
}
