import { Dialog as BaseDialog } from '@base-ui/react/dialog'
import type { ReactNode } from 'react'
import style from './frame.module.css'

type DrawerProps = { readonly open: boolean; readonly onClose: () => void; readonly children: ReactNode }

/** The menu of narrow screens. */
export function Drawer({ open, onClose, children }: DrawerProps) {
  return (
    <BaseDialog.Root open={open} onOpenChange={(next) => next || onClose()}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={style.backdrop} />
        <BaseDialog.Popup className={style.drawer} aria-label="Menu">
          {children}
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  )
}
