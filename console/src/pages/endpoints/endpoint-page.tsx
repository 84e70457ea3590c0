import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useParams } from '@tanstack/react-router'
import { FlaskConical, Pause, Play } from 'lucide-react'
import { type Endpoint, endpointQuery, pauseEndpoint, resumeEndpoint } from '../../api/endpoints.ts'
import { isMissing } from '../../api/intervals.ts'
import { Button } from '../../design/button.tsx'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { TabBar } from '../../design/tabs.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { LoadFailure } from '../../shell/load-failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { TabLink } from '../../shell/tab-link.tsx'
import { useChange } from '../../shell/use-change.ts'

/** Head of all screens of one endpoint. */
export function EndpointPage() {
  const account = useAccount()
  const { endpoint: id } = useParams({ from: '/signed-in/in/$account/endpoints/$endpoint' })
  const endpoint = useQuery(endpointQuery(account, id))
  const place = { account, endpoint: id }
  const trail = (
    <Link to="/in/$account/endpoints" params={{ account }}>
      Endpoints
    </Link>
  )
  // Also while it is open: the last data is delivered, and it is gone.
  if (endpoint.isError && (endpoint.data === undefined || isMissing(endpoint.error))) {
    return (
      <Page title={endpoint.data?.name ?? 'Endpoint'} trail={trail}>
        <LoadFailure
          query={endpoint}
          noun="endpoint"
          back={
            <ButtonLink to="/in/$account/endpoints" params={{ account }}>
              Go to the endpoints
            </ButtonLink>
          }
        >
          <p>What it delivered stays in your bucket.</p>
        </LoadFailure>
      </Page>
    )
  }
  return (
    <Page
      title={
        <>
          {endpoint.data?.name ?? 'Endpoint'}
          {endpoint.data !== undefined && <StatusBadge status={endpoint.data.status} />}
        </>
      }
      trail={trail}
      actions={endpoint.data !== undefined && <Actions endpoint={endpoint.data} />}
    >
      <TabBar label="Endpoint">
        <TabLink to="/in/$account/endpoints/$endpoint" params={place} activeOptions={{ exact: true }}>
          Overview
        </TabLink>
        <TabLink to="/in/$account/endpoints/$endpoint/commits" params={place}>
          Commits
        </TabLink>
        <TabLink to="/in/$account/endpoints/$endpoint/records" params={place}>
          Records
        </TabLink>
        <TabLink to="/in/$account/endpoints/$endpoint/test" params={place}>
          Test event
        </TabLink>
        <TabLink to="/in/$account/endpoints/$endpoint/settings" params={place}>
          Settings
        </TabLink>
      </TabBar>
      {endpoint.isError && <Failure error={endpoint.error} onRetry={() => void endpoint.refetch()} />}
      {endpoint.data === undefined ? <Skeleton rows={3} height="figure" /> : <Outlet />}
    </Page>
  )
}

function Actions({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id, status } = endpoint
  const account = useAccount()
  const mayChange = useMay('member')
  const isPaused = status === 'paused'
  const change = useChange({
    call: () => (isPaused ? resumeEndpoint(id) : pauseEndpoint(id)),
    changes: [endpointQuery(account, id).queryKey],
    said: isPaused ? 'Endpoint resumed' : 'Endpoint paused',
  })
  if (!mayChange || status === 'draining') return null
  return (
    <>
      <Button
        icon={isPaused ? <Play aria-hidden="true" /> : <Pause aria-hidden="true" />}
        busy={change.isPending}
        onClick={() => change.mutate()}
      >
        {isPaused ? 'Resume' : 'Pause'} endpoint
      </Button>
      <ButtonLink
        look="primary"
        icon={<FlaskConical aria-hidden="true" />}
        to="/in/$account/endpoints/$endpoint/test"
        params={{ account, endpoint: id }}
      >
        Send a test event
      </ButtonLink>
      {change.isError && <Failure error={change.error} />}
    </>
  )
}
