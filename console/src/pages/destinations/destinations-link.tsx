import { Link } from '@tanstack/react-router'
import { useAccount } from '../../shell/session.tsx'

export function DestinationsLink() {
  return (
    <Link to="/in/$account/destinations" params={{ account: useAccount() }}>
      Destinations
    </Link>
  )
}
