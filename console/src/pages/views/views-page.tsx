import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Table2 } from 'lucide-react'
import { useWholeList, viewsQuery } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { TextField } from '../../design/field.tsx'
import { formatCount } from '../../design/format.ts'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { groupViews, matchesView, type NamedView } from './group-views.ts'
import style from './views.module.css'

const route = getRouteApi('/signed-in/in/$account/views')

/** All views, a row each. */
export function ViewsPage() {
  const account = useAccount()
  const { find = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const views = useInfiniteQuery(viewsQuery(account))
  useWholeList(views, find !== '')
  const all = groupViews(views.data?.pages.flatMap(({ items }) => items) ?? [])
  return (
    <Page
      title="Views"
      about="A view turns the JSON records of an endpoint into a typed table: columns, types and filters."
      actions={all.length > 0 && <CreateView />}
    >
      {views.isError && <Failure error={views.error} onRetry={() => void views.refetch()} />}
      {views.isPending && <Skeleton rows={4} height="figure" />}
      {views.isSuccess && all.length === 0 && <NoViews />}
      {all.length > 0 && (
        <>
          <div className={style.search}>
            <TextField
              label="Find a view"
              type="search"
              value={find}
              onChange={(text) => void navigate({ search: text === '' ? {} : { find: text }, replace: true })}
              placeholder="Name, description or tag"
            />
          </div>
          <Table
            label="Views"
            columns={columnsOf(account)}
            rows={all.filter((view) => matchesView(view, find))}
            keyOf={({ name }) => name}
            empty={views.hasNextPage ? <Skeleton rows={4} height="figure" /> : <EmptyState title={`No view matches “${find}”`} />}
            more={views}
          />
        </>
      )}
    </Page>
  )
}

function columnsOf(account: string): readonly TableColumn<NamedView>[] {
  return [
    {
      title: 'Name',
      cell: ({ name, current }) => (
        <>
          <Link to="/in/$account/views/$view" params={{ account, view: current.id }} className={style.name}>
            {name}
          </Link>
          {current.description !== '' && <div className={style.description}>{current.description}</div>}
        </>
      ),
    },
    { title: 'Status', cell: ({ current }) => <StatusBadge status={current.status} /> },
    { title: 'Version', cell: (view) => <Versions view={view} account={account} /> },
    {
      title: 'Tags',
      cell: ({ current }) => (
        <span className={style.tags}>
          {current.tags.map((tag) => (
            <Badge key={tag}>{tag}</Badge>
          ))}
        </span>
      ),
      minor: true,
    },
    { title: 'Columns', cell: ({ current }) => formatCount(current.definition.columns.length), figure: true, minor: true },
    { title: 'Endpoints', cell: ({ attachments }) => formatCount(attachments), figure: true },
    { title: 'Created', cell: ({ versions }) => <Time at={versions[0]?.created_at ?? 0} />, minor: true },
  ]
}

function Versions({ view: { current, draft }, account }: { readonly view: NamedView; readonly account: string }) {
  return (
    <span className={style.tags}>
      v{current.version}
      {draft !== undefined && (
        <Link to="/in/$account/views/$view" params={{ account, view: draft.id }}>
          draft v{draft.version}
        </Link>
      )}
    </span>
  )
}

function CreateView() {
  const account = useAccount()
  const mayCreate = useMay('member')
  if (!mayCreate) return null
  return (
    <ButtonLink look="primary" to="/in/$account/views/new" params={{ account }}>
      Create view
    </ButtonLink>
  )
}

function NoViews() {
  return (
    <EmptyState icon={<Table2 />} title="No view yet" action={<CreateView />}>
      <p>Records arrive as JSON. A view names the fields that you need and gives each a type, so that queries find columns.</p>
    </EmptyState>
  )
}
