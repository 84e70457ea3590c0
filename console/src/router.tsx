/**
 * The addresses of the console.
 *
 * Law: each screen has one, and control serves every path that begins as one of these (`src/control/http/pages/console.ts`).
 */
import type { QueryClient } from '@tanstack/react-query'
import { useSuspenseQuery } from '@tanstack/react-query'
import {
  type AnyRoute,
  createRootRouteWithContext,
  createRoute,
  createRouter,
  Outlet,
  type ResolveFullPath,
  type ResolveId,
  type Route,
  redirect,
} from '@tanstack/react-router'
import { type ReactNode, useLayoutEffect } from 'react'
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
import { newSecretSearch } from './pages/secrets/secret-search.ts'
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

const errorSearch = ({ error }: Record<string, unknown>): { readonly error?: string } =>
  typeof error === 'string' ? { error } : {}

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

type Screen<Parent extends AnyRoute, Path extends string, Validator = undefined> = Route<
  unknown,
  Parent,
  Path,
  ResolveFullPath<Parent, Path>,
  string,
  ResolveId<Parent, string, Path>,
  Validator
>
type ReadSearch<Search> = (search: Record<string, unknown>) => Search

/** A route to a screen that is loaded when it is opened. With `search`, it sees only what that returns. */
function screen<Parent extends AnyRoute, const Path extends string, Module extends object>(
  ...args: [parent: Parent, path: Path, load: () => Promise<Module>, name: keyof Module & string]
): Screen<Parent, Path>
function screen<Parent extends AnyRoute, const Path extends string, Module extends object, Search extends object>(
  ...args: [parent: Parent, path: Path, load: () => Promise<Module>, name: keyof Module & string, search: ReadSearch<Search>]
): Screen<Parent, Path, ReadSearch<Search>>
function screen(parent: AnyRoute, path: string, load: () => Promise<object>, name: string, search?: ReadSearch<object>): unknown {
  return createRoute({
    getParentRoute: () => parent,
    path,
    component: lazyScreen(load as () => Promise<Record<string, () => ReactNode>>, name),
    ...(search === undefined ? {} : { validateSearch: onlyKnown(search) }),
  })
}

const overview = createRoute({
  getParentRoute: () => inAccount,
  path: '/',
  validateSearch: onlyKnown(readChartSearch),
  component: function Overview() {
    return <OverviewPage search={overview.useSearch()} />
  },
})
const endpoint = screen(inAccount, '/endpoints/$endpoint', () => import('./pages/endpoints/endpoint-page.tsx'), 'EndpointPage')
const viewQuality = screen(
  inAccount,
  '/quality/$view',
  () => import('./pages/quality/view-quality-frame.tsx'),
  'ViewQualityFrame',
  viewQualitySearch,
)

const tree = root.addChildren([
  signIn,
  signedIn.addChildren([
    home,
    inAccount.addChildren([
      overview,
      screen(inAccount, '/explore', () => import('./pages/explore/explore-page.tsx'), 'ExplorePage', readExploreSearch),
      screen(inAccount, '/endpoints', () => import('./pages/endpoints/endpoints-page.tsx'), 'EndpointsPage', endpointsSearch),
      endpoint.addChildren([
        screen(endpoint, '/', () => import('./pages/endpoints/endpoint-overview.tsx'), 'EndpointOverview', readChartSearch),
        screen(endpoint, '/commits', () => import('./pages/endpoints/endpoint-commits.tsx'), 'EndpointCommits', commitSearch),
        screen(endpoint, '/records', () => import('./pages/endpoints/endpoint-records.tsx'), 'EndpointRecords'),
        screen(endpoint, '/test', () => import('./pages/endpoints/endpoint-test.tsx'), 'EndpointTest', testSearch),
        screen(endpoint, '/settings', () => import('./pages/endpoints/endpoint-settings.tsx'), 'EndpointSettings'),
      ]),
      screen(inAccount, '/destinations', () => import('./pages/destinations/destinations-page.tsx'), 'DestinationsPage'),
      screen(inAccount, '/destinations/new', () => import('./pages/destinations/new-destination-page.tsx'), 'NewDestinationPage'),
      screen(
        inAccount,
        '/destinations/$destination',
        () => import('./pages/destinations/destination-page.tsx'),
        'DestinationPage',
        destinationSearch,
      ),
      screen(inAccount, '/keys', () => import('./pages/keys/keys-page.tsx'), 'KeysPage', keysSearch),
      screen(inAccount, '/keys/new', () => import('./pages/keys/new-key-page.tsx'), 'NewKeyPage', newKeySearch),
      screen(inAccount, '/secrets', () => import('./pages/secrets/secrets-page.tsx'), 'SecretsPage'),
      screen(inAccount, '/secrets/new', () => import('./pages/secrets/new-secret-page.tsx'), 'NewSecretPage', newSecretSearch),
      screen(inAccount, '/quality', () => import('./pages/quality/quality-page.tsx'), 'QualityPage', qualityListSearch),
      viewQuality.addChildren([
        screen(viewQuality, '/', () => import('./pages/quality/columns-page.tsx'), 'ColumnsPage'),
        screen(viewQuality, '/dead-letters', () => import('./pages/quality/dead-letters-page.tsx'), 'DeadLettersPage'),
        screen(viewQuality, '/jobs', () => import('./pages/quality/view-jobs-page.tsx'), 'ViewJobsPage'),
      ]),
      screen(inAccount, '/jobs', () => import('./pages/quality/jobs-page.tsx'), 'JobsPage', jobsSearch),
      screen(inAccount, '/jobs/$job', () => import('./pages/quality/job-page.tsx'), 'JobPage'),
      screen(inAccount, '/views', () => import('./pages/views/views-page.tsx'), 'ViewsPage', viewsSearch),
      screen(inAccount, '/views/new', () => import('./pages/views/new-view-page.tsx'), 'NewViewPage', newViewSearch),
      screen(inAccount, '/views/$view', () => import('./pages/views/view-page.tsx'), 'ViewPage'),
      screen(inAccount, '/views/$view/edit', () => import('./pages/views/edit-view-page.tsx'), 'EditViewPage'),
      screen(inAccount, '/views/$view/endpoints', () => import('./pages/views/view-endpoints-page.tsx'), 'ViewEndpointsPage'),
      screen(inAccount, '/views/$view/compare', () => import('./pages/views/compare-page.tsx'), 'ComparePage', compareSearch),
      screen(inAccount, '/people', () => import('./pages/people/people-page.tsx'), 'PeoplePage'),
      screen(inAccount, '/audit', () => import('./pages/audit/audit-page.tsx'), 'AccountAuditPage', auditSearch),
    ]),
    outside.addChildren([
      screen(outside, '/me', () => import('./pages/me/me-page.tsx'), 'MePage', errorSearch),
      screen(outside, '/operate/nodes', () => import('./pages/nodes/nodes-page.tsx'), 'NodesPage'),
      screen(outside, '/operate/nodes/join', () => import('./pages/nodes/join-page.tsx'), 'JoinPage'),
      screen(outside, '/operate/nodes/$node', () => import('./pages/nodes/node-page.tsx'), 'NodePage', nodeSearch),
      screen(outside, '/operate/accounts', () => import('./pages/accounts/accounts-page.tsx'), 'AccountsPage'),
      screen(outside, '/operate/accounts/new', () => import('./pages/accounts/new-account-page.tsx'), 'NewAccountPage'),
      screen(outside, '/operate/accounts/$id', () => import('./pages/accounts/account-page.tsx'), 'AccountPage'),
      screen(outside, '/operate/audit', () => import('./pages/audit/audit-page.tsx'), 'InstallationAuditPage', auditSearch),
    ]),
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
