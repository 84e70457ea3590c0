import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { type ViewDetail, viewQuery } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { TabBar } from '../../design/tabs.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { LoadFailure } from '../../shell/load-failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { TabLink } from '../../shell/tab-link.tsx'
import { ViewActions } from './view-actions.tsx'
import style from './views.module.css'

const route = getRouteApi('/signed-in/in/$account')

type ViewFrameProps = { readonly id: string; readonly children: (view: ViewDetail) => ReactNode }

/** Head of all screens of one version: its name, its state, its actions, its tabs. */
export function ViewFrame({ id, children }: ViewFrameProps) {
  const account = useAccount()
  const mayChange = useMay('member')
  const view = useQuery(viewQuery(account, id))
  if (view.isError) {
    return (
      <Page title="View" trail={<Trail />}>
        <ViewLoadFailure query={view} />
      </Page>
    )
  }
  if (view.data === undefined) {
    return (
      <Page title="View" trail={<Trail />}>
        <Skeleton rows={6} height="figure" />
      </Page>
    )
  }
  const { name, version, status, description, tags } = view.data
  return (
    <Page
      trail={<Trail />}
      title={
        <>
          {name}
          <Badge>version {version}</Badge>
          <StatusBadge status={status} />
          {tags.map((tag) => (
            <Badge key={tag}>{tag}</Badge>
          ))}
        </>
      }
      about={description === '' ? undefined : description}
      actions={mayChange && <ViewActions view={view.data} />}
    >
      <Tabs id={id} />
      <div className={style.stack}>{children(view.data)}</div>
    </Page>
  )
}

/** For each screen of a version. */
export function ViewLoadFailure({ query }: Pick<ComponentProps<typeof LoadFailure>, 'query'>) {
  const { account } = route.useParams()
  const back = (
    <ButtonLink to="/in/$account/views" params={{ account }}>
      Go to the views
    </ButtonLink>
  )
  return <LoadFailure query={query} noun="view" back={back} />
}

export function Trail() {
  const { account } = route.useParams()
  return (
    <Link to="/in/$account/views" params={{ account }}>
      Views
    </Link>
  )
}

function Tabs({ id }: { readonly id: string }) {
  const { account } = route.useParams()
  const params = { account, view: id }
  return (
    <TabBar label="View">
      <TabLink to="/in/$account/views/$view" params={params} activeOptions={{ exact: true }}>
        Definition
      </TabLink>
      <TabLink to="/in/$account/views/$view/endpoints" params={params}>
        Endpoints
      </TabLink>
      <TabLink to="/in/$account/views/$view/compare" params={params}>
        Differences
      </TabLink>
    </TabBar>
  )
}
