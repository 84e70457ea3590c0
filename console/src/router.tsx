/**
 * The addresses of the console.
 *
 * Law: each screen has one, and control serves every path that begins as one of these (`src/control/http/pages/console.ts`).
 */
import type { QueryClient } from '@tanstack/react-query'
import { useSuspenseQuery } from '@tanstack/react-query'
import { createRootRouteWithContext, createRoute, createRouter, Outlet, redirect } from '@tanstack/react-router'
import { useLayoutEffect } from 'react'
import { callFor } from './api/client.ts'
import { sessionQuery } from './api/session.ts'
import { Page } from './design/layout.tsx'
import { Skeleton } from './design/skeleton.tsx'

import { auditSearch } from './pages/audit/audit-search.ts'

import { destinationSearch } from './pages/destinations/destination-search.ts'
import { commitSearch } from './pages/endpoints/commit-search.ts'
import { endpointsSearch } from './pages/endpoints/endpoints-search.ts'
import { testSearch } from './pages/endpoints/test-search.ts'
import { readExploreSearch } from './pages/explore/explore-search.ts'
import { keysSearch, newKeySearch } from './pages/keys/key-search.ts'
import { nodeSearch } from './pages/nodes/node-search.ts'
import { OverviewPage } from './pages/overview/overview-page.tsx'
import { jobsSearch, qualityListSearch, viewQualitySearch } from './pages/quality/quality-search.ts'
import { SignInPage } from './pages/sign-in/sign-in-page.tsx'
import { compareSearch, newViewSearch, viewsSearch } from './pages/views/view-search.ts'
import { readChartSearch } from './shell/chart-search.ts'
import { Frame } from './shell/frame.tsx'
import { lazyScreen } from './shell/lazy-screen.ts'
import { NotFound } from './shell/not-found.tsx'
import { onlyKnown } from './shell/only-known.ts'
import { OperatorsOnly } from './shell/operators-only.tsx'
import { isPlaceHere } from './shell/place-here.ts'
import { rememberAccount, rememberedAccount } from './shell/remembered-account.ts'
import { ScreenFailure } from './shell/screen-failure.tsx'
import { HereProvider } from './shell/session.tsx'

const root = createRootRouteWithContext<{ readonly queries: QueryClient }>()({ component: Outlet, notFoundComponent: NotFound })

type SignInSearch = { readonly to?: string | undefined; readonly error?: string | undefined }

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: onlyKnown(
    ({ to, error }): SignInSearch => ({
      to: isPlaceHere(to) ? to : undefined,
      error: typeof error === 'string' ? error : undefined,
    }),
  ),
  component: SignInPage,
})

/** Everything else needs a session. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  beforeLoad: async ({ context: { queries }, location }) => {
    const session = await queries.ensureQueryData(sessionQuery)
    if (session === null) throw redirect({ to: '/sign-in', search: location.pathname === '/' ? {} : { to: location.href } })
    return { session }
  },
})

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  beforeLoad: ({ context: { session } }) => {
    const remembered = rememberedAccount()
    const account = session.accounts.find(({ account_id }) => account_id === remembered) ?? session.accounts[0]
    if (account === undefined) throw redirect({ to: '/me' })
    throw redirect({ to: '/in/$account', params: { account: account.account_id } })
  },
})

/** Screens of an account. */
const inAccount = createRoute({
  getParentRoute: () => signedIn,
  path: '/in/$account',
  beforeLoad: ({ params, context: { session }, preload }) => {
    const account = session.accounts.find(({ account_id }) => account_id === params.account)
    if (account === undefined) throw redirect({ to: '/' })
    // A link that is only pointed at changes nothing.
    if (!preload) rememberAccount(account.account_id)
    return { account }
  },
  component: function InAccount() {
    const { account } = inAccount.useRouteContext()
    return <Framed account_id={account.account_id} />
  },
})

/** Screens of a person, and of the installation. */
const outside = createRoute({
  getParentRoute: () => signedIn,
  id: 'outside',
  component: () => <Framed account_id={undefined} />,
})

function Framed({ account_id }: { readonly account_id: string | undefined }) {
  const { data: session } = useSuspenseQuery(sessionQuery)
  // Before the effects of a new screen, and not earlier: until it stands here, the old one goes on asking for its own account.
  useLayoutEffect(() => callFor(account_id), [account_id])
  if (session === null) return null
  const account = session.accounts.find((each) => each.account_id === account_id)
  return (
    <HereProvider here={{ session, account }}>
      <Frame>
        <OperatorsOnly>
          <Outlet />
        </OperatorsOnly>
      </Frame>
    </HereProvider>
  )
}

const overview = createRoute({
  getParentRoute: () => inAccount,
  path: '/',
  validateSearch: onlyKnown(readChartSearch),
  component: function Overview() {
    return <OverviewPage search={overview.useSearch()} />
  },
})
const explore = createRoute({
  getParentRoute: () => inAccount,
  path: '/explore',
  validateSearch: onlyKnown(readExploreSearch),
  component: lazyScreen(() => import('./pages/explore/explore-page.tsx'), 'ExplorePage'),
})
const endpoints = createRoute({
  getParentRoute: () => inAccount,
  path: '/endpoints',
  validateSearch: onlyKnown(endpointsSearch),
  component: lazyScreen(() => import('./pages/endpoints/endpoints-page.tsx'), 'EndpointsPage'),
})
const endpoint = createRoute({
  getParentRoute: () => inAccount,
  path: '/endpoints/$endpoint',
  component: lazyScreen(() => import('./pages/endpoints/endpoint-page.tsx'), 'EndpointPage'),
})
const endpointOverview = createRoute({
  getParentRoute: () => endpoint,
  path: '/',
  validateSearch: onlyKnown(readChartSearch),
  component: lazyScreen(() => import('./pages/endpoints/endpoint-overview.tsx'), 'EndpointOverview'),
})
const endpointCommits = createRoute({
  getParentRoute: () => endpoint,
  path: '/commits',
  validateSearch: onlyKnown(commitSearch),
  component: lazyScreen(() => import('./pages/endpoints/endpoint-commits.tsx'), 'EndpointCommits'),
})
const endpointRecords = createRoute({
  getParentRoute: () => endpoint,
  path: '/records',
  component: lazyScreen(() => import('./pages/endpoints/endpoint-records.tsx'), 'EndpointRecords'),
})
const endpointTest = createRoute({
  getParentRoute: () => endpoint,
  path: '/test',
  validateSearch: onlyKnown(testSearch),
  component: lazyScreen(() => import('./pages/endpoints/endpoint-test.tsx'), 'EndpointTest'),
})
const endpointSettings = createRoute({
  getParentRoute: () => endpoint,
  path: '/settings',
  component: lazyScreen(() => import('./pages/endpoints/endpoint-settings.tsx'), 'EndpointSettings'),
})
const endpointScreens = [
  endpoints,
  endpoint.addChildren([endpointOverview, endpointCommits, endpointRecords, endpointTest, endpointSettings]),
] as const
const me = createRoute({
  getParentRoute: () => outside,
  path: '/me',
  validateSearch: onlyKnown(({ error }): { readonly error?: string } => (typeof error === 'string' ? { error } : {})),
  component: lazyScreen(() => import('./pages/me/me-page.tsx'), 'MePage'),
})
const destinations = createRoute({
  getParentRoute: () => inAccount,
  path: '/destinations',
  component: lazyScreen(() => import('./pages/destinations/destinations-page.tsx'), 'DestinationsPage'),
})
const newDestination = createRoute({
  getParentRoute: () => inAccount,
  path: '/destinations/new',
  component: lazyScreen(() => import('./pages/destinations/new-destination-page.tsx'), 'NewDestinationPage'),
})
const destination = createRoute({
  getParentRoute: () => inAccount,
  path: '/destinations/$destination',
  validateSearch: onlyKnown(destinationSearch),
  component: lazyScreen(() => import('./pages/destinations/destination-page.tsx'), 'DestinationPage'),
})
const destinationScreens = [destinations, newDestination, destination] as const
const quality = createRoute({
  getParentRoute: () => inAccount,
  path: '/quality',
  validateSearch: onlyKnown(qualityListSearch),
  component: lazyScreen(() => import('./pages/quality/quality-page.tsx'), 'QualityPage'),
})
const viewQuality = createRoute({
  getParentRoute: () => inAccount,
  path: '/quality/$view',
  validateSearch: onlyKnown(viewQualitySearch),
  component: lazyScreen(() => import('./pages/quality/view-quality-frame.tsx'), 'ViewQualityFrame'),
})
const columnQuality = createRoute({
  getParentRoute: () => viewQuality,
  path: '/',
  component: lazyScreen(() => import('./pages/quality/columns-page.tsx'), 'ColumnsPage'),
})
const deadLetters = createRoute({
  getParentRoute: () => viewQuality,
  path: '/dead-letters',
  component: lazyScreen(() => import('./pages/quality/dead-letters-page.tsx'), 'DeadLettersPage'),
})
const viewJobs = createRoute({
  getParentRoute: () => viewQuality,
  path: '/jobs',
  component: lazyScreen(() => import('./pages/quality/view-jobs-page.tsx'), 'ViewJobsPage'),
})
const jobs = createRoute({
  getParentRoute: () => inAccount,
  path: '/jobs',
  validateSearch: onlyKnown(jobsSearch),
  component: lazyScreen(() => import('./pages/quality/jobs-page.tsx'), 'JobsPage'),
})
const job = createRoute({
  getParentRoute: () => inAccount,
  path: '/jobs/$job',
  component: lazyScreen(() => import('./pages/quality/job-page.tsx'), 'JobPage'),
})
const qualityScreens = [quality, viewQuality.addChildren([columnQuality, deadLetters, viewJobs]), jobs, job] as const

const keys = createRoute({
  getParentRoute: () => inAccount,
  path: '/keys',
  validateSearch: onlyKnown(keysSearch),
  component: lazyScreen(() => import('./pages/keys/keys-page.tsx'), 'KeysPage'),
})
const newKey = createRoute({
  getParentRoute: () => inAccount,
  path: '/keys/new',
  validateSearch: onlyKnown(newKeySearch),
  component: lazyScreen(() => import('./pages/keys/new-key-page.tsx'), 'NewKeyPage'),
})
const keyScreens = [keys, newKey] as const
const nodes = createRoute({
  getParentRoute: () => outside,
  path: '/operate/nodes',
  component: lazyScreen(() => import('./pages/nodes/nodes-page.tsx'), 'NodesPage'),
})
const join = createRoute({
  getParentRoute: () => outside,
  path: '/operate/nodes/join',
  component: lazyScreen(() => import('./pages/nodes/join-page.tsx'), 'JoinPage'),
})
const node = createRoute({
  getParentRoute: () => outside,
  path: '/operate/nodes/$node',
  validateSearch: onlyKnown(nodeSearch),
  component: lazyScreen(() => import('./pages/nodes/node-page.tsx'), 'NodePage'),
})
const accounts = createRoute({
  getParentRoute: () => outside,
  path: '/operate/accounts',
  component: lazyScreen(() => import('./pages/accounts/accounts-page.tsx'), 'AccountsPage'),
})
const newAccount = createRoute({
  getParentRoute: () => outside,
  path: '/operate/accounts/new',
  component: lazyScreen(() => import('./pages/accounts/new-account-page.tsx'), 'NewAccountPage'),
})
const account = createRoute({
  getParentRoute: () => outside,
  path: '/operate/accounts/$id',
  component: lazyScreen(() => import('./pages/accounts/account-page.tsx'), 'AccountPage'),
})
const operatorScreens = [nodes, join, node, accounts, newAccount, account] as const

const people = createRoute({
  getParentRoute: () => inAccount,
  path: '/people',
  component: lazyScreen(() => import('./pages/people/people-page.tsx'), 'PeoplePage'),
})
const audit = createRoute({
  getParentRoute: () => inAccount,
  path: '/audit',
  validateSearch: onlyKnown(auditSearch),
  component: lazyScreen(() => import('./pages/audit/audit-page.tsx'), 'AccountAuditPage'),
})
const installationAudit = createRoute({
  getParentRoute: () => outside,
  path: '/operate/audit',
  validateSearch: onlyKnown(auditSearch),
  component: lazyScreen(() => import('./pages/audit/audit-page.tsx'), 'InstallationAuditPage'),
})

const views = createRoute({
  getParentRoute: () => inAccount,
  path: '/views',
  validateSearch: onlyKnown(viewsSearch),
  component: lazyScreen(() => import('./pages/views/views-page.tsx'), 'ViewsPage'),
})
const view = createRoute({
  getParentRoute: () => inAccount,
  path: '/views/$view',
  component: lazyScreen(() => import('./pages/views/view-page.tsx'), 'ViewPage'),
})
const newView = createRoute({
  getParentRoute: () => inAccount,
  path: '/views/new',
  validateSearch: onlyKnown(newViewSearch),
  component: lazyScreen(() => import('./pages/views/new-view-page.tsx'), 'NewViewPage'),
})
const editView = createRoute({
  getParentRoute: () => inAccount,
  path: '/views/$view/edit',
  component: lazyScreen(() => import('./pages/views/edit-view-page.tsx'), 'EditViewPage'),
})
const viewEndpoints = createRoute({
  getParentRoute: () => inAccount,
  path: '/views/$view/endpoints',
  component: lazyScreen(() => import('./pages/views/view-endpoints-page.tsx'), 'ViewEndpointsPage'),
})
const compareView = createRoute({
  getParentRoute: () => inAccount,
  path: '/views/$view/compare',
  validateSearch: onlyKnown(compareSearch),
  component: lazyScreen(() => import('./pages/views/compare-page.tsx'), 'ComparePage'),
})
const viewScreens = [views, newView, view, editView, viewEndpoints, compareView] as const

const tree = root.addChildren([
  signIn,
  signedIn.addChildren([
    home,
    inAccount.addChildren([
      overview,
      explore,
      ...endpointScreens,
      ...destinationScreens,
      ...keyScreens,
      ...qualityScreens,
      ...viewScreens,
      people,
      audit,
    ]),
    outside.addChildren([me, installationAudit, ...operatorScreens]),
  ]),
])

export function createAppRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    defaultPreload: 'intent',
    defaultErrorComponent: ScreenFailure,
    defaultPendingComponent: () => (
      <Page title="">
        <Skeleton rows={3} />
      </Page>
    ),
    defaultPendingMs: 200,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createAppRouter>
  }
}
