import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type Account, accountsQuery } from '../../api/accounts.ts'
import { Badge } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount } from '../../design/format.ts'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './accounts.module.css'

/** The tenants of the installation. */
export function AccountsPage() {
  const accounts = useInfiniteQuery(accountsQuery)
  return (
    <Page
      title="Accounts"
      about="Each account has its own endpoints, destinations, views, keys and people. None sees another, and quotas keep one from filling up the installation."
      actions={
        <ButtonLink look="primary" to="/operate/accounts/new">
          Create account
        </ButtonLink>
      }
    >
      {accounts.isError && <Failure error={accounts.error} onRetry={() => void accounts.refetch()} />}
      {accounts.isPending && <Skeleton rows={3} height="figure" />}
      {accounts.isSuccess && (
        <Table
          label="Accounts"
          columns={columns}
          rows={accounts.data.pages.flatMap(({ items }) => items)}
          keyOf={({ id }) => id}
          empty={<EmptyState title="No account" />}
          more={accounts}
        />
      )}
    </Page>
  )
}

const columns: readonly TableColumn<Account>[] = [
  {
    title: 'Name',
    cell: ({ id, name }) => (
      <Link to="/operate/accounts/$id" params={{ id }} className={style.name}>
        {name}
      </Link>
    ),
  },
  { title: 'Status', cell: ({ status }) => <AccountStatus status={status} /> },
  { title: 'Weight', cell: ({ weight }) => formatCount(weight), figure: true, minor: true },
  { title: 'Records a second', cell: ({ quotas }) => formatCount(quotas.records_per_second), figure: true, minor: true },
  { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
]

export function AccountStatus({ status }: Pick<Account, 'status'>) {
  return (
    <Badge tone={status === 'active' ? 'good' : 'warn'} dot>
      {status}
    </Badge>
  )
}
